"""The plateau's best value and its patience come back with the rest."""

import os
import tempfile

import torch
from torch import nn
from torch.optim.lr_scheduler import ReduceLROnPlateau

torch.manual_seed(2)
inputs, targets = torch.randn(48, 5), torch.randn(48, 1)


def run(path, epochs):
    net = nn.Linear(5, 1)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    plateau = ReduceLROnPlateau(optimizer, factor=0.5, patience=3)
    begin = 0
    if os.path.exists(path):
        state = torch.load(path, weights_only=True)
        net.load_state_dict(state["net"])
        optimizer.load_state_dict(state["optimizer"])
        plateau.load_state_dict(state["plateau"])
        begin = state["epoch"] + 1
    for epoch in range(begin, epochs):
        for part in torch.randperm(48).split(12):
            loss = nn.functional.mse_loss(net(inputs[part]), targets[part])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        plateau.step(loss.item())
        state = {"net": net.state_dict(), "optimizer": optimizer.state_dict()}
        torch.save({**state, "plateau": plateau.state_dict(), "epoch": epoch}, path)


with tempfile.TemporaryDirectory() as folder:
    run(os.path.join(folder, "state.pt"), 3)
    run(os.path.join(folder, "state.pt"), 6)
