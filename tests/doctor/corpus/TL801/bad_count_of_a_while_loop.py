"""Updates are counted across files; the moments of Adam begin at zero each time."""

import os

import torch
from torch import nn

FILE = "ckpt.pt"


def batch():
    x = torch.randn(16, 4)
    return x, x.sum(1, keepdim=True)


def run(max_iters, init_from):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    iter_num = 0
    if init_from == "resume":
        checkpoint = torch.load(FILE)
        model.load_state_dict(checkpoint["model"])  # <- TL801
        iter_num = checkpoint["iter_num"]
    while True:
        x, y = batch()
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        iter_num += 1
        if iter_num > max_iters:
            break
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    torch.save({**state, "iter_num": iter_num}, FILE)


torch.manual_seed(0)
run(5, "scratch")
run(10, "resume")
os.remove(FILE)
