"""A fresh model and optimizer for each fold, each trial, each seed."""

import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, Subset, TensorDataset


def make_model(width):
    return nn.Sequential(nn.Linear(5, width), nn.ReLU(), nn.Linear(width, 2))


def fit(model, optimizer, loader, epochs=2):
    for _ in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(90, 5), torch.randint(0, 2, (90,)))
    folds = torch.randperm(90).chunk(3)
    for fold in range(3):
        chosen = torch.cat([part for i, part in enumerate(folds) if i != fold]).tolist()
        model = make_model(16)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        loader = DataLoader(Subset(dataset, chosen), batch_size=15, shuffle=True)
        print("fold", fold, fit(model, optimizer, loader))

    loader = DataLoader(dataset, batch_size=15, shuffle=True)
    model = make_model(8)
    start = copy.deepcopy(model.state_dict())
    for lr in (1e-1, 1e-2, 1e-3):
        model.load_state_dict(start)
        optimizer = torch.optim.Adam(model.parameters(), lr=lr)
        print("lr", lr, fit(model, optimizer, loader))


if __name__ == "__main__":
    main()
