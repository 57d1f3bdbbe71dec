"""The parts of a training in a dictionary; only some of them are asked for."""

import torch
from torch import nn, optim


def setup(config):
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
    state = dict(model=model, criterion=nn.MSELoss())
    state["optimizer"] = optim.AdamW(model.parameters(), lr=config["lr"])
    state["schedule"] = optim.lr_scheduler.ExponentialLR(state["optimizer"], 0.9)
    return state


def step(state, x, y):
    state["optimizer"].zero_grad()
    loss = state["criterion"](state["model"](x), y)
    loss.backward()
    state["optimizer"].step()
    return loss.item()


def main():
    torch.manual_seed(0)
    config = {"lr": 1e-2, "epochs": 3}
    state = setup(config)
    x = torch.randn(64, 5)
    y = x.mean(1, keepdim=True)
    for epoch in range(config["epochs"]):
        for rows in torch.randperm(64).split(16):
            step(state, x[rows], y[rows])
        state["schedule"].step()


if __name__ == "__main__":
    main()
