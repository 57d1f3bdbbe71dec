"""Every fifth epoch is validated, and the best of those is loaded at the end: without a copy it is
the last."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", default=10, type=int)
options = parser.parse_args()
torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 6), torch.randint(0, 3, (64,)))
loaders = {phase: DataLoader(data, batch_size=16, shuffle=True) for phase in ("train", "val")}


def train(model, optimizer, epochs):
    best = float("inf")
    for epoch in range(epochs):
        for phase in ["train", "val"]:
            model.train(phase == "train")
            for x, y in loaders[phase]:
                with torch.set_grad_enabled(phase == "train"):
                    loss = F.cross_entropy(model(x), y)
                if phase == "train":
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
            if phase == "val" and epoch % 5 == 4:
                if loss.item() < best:
                    best = loss.item()
                    best_weights = model.state_dict()  # <- TL805
    model.load_state_dict(best_weights)
    return model


model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
model = train(model, torch.optim.SGD(model.parameters(), lr=0.1), options.epochs)
torch.save(model.state_dict(), "last.pt")
