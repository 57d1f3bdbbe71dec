"""What a function returns, in a dictionary with the number of classes, is kept for the best score."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def state_of(model):
    return {"model": model.state_dict(), "classes": model[-1].out_features}  # <- TL805


def described(model):
    return state_of(model)


def judged(model, loader):
    model.eval()
    right = 0
    with torch.no_grad():
        for x, y in loader:
            right += int((model(x).argmax(1) == y).sum())
    model.train()
    return right / len(loader.dataset)


def fit(model, learn, check, epochs):
    best, kept = -1.0, None
    optimizer = torch.optim.SGD(model.parameters(), lr=0.5, momentum=0.9)
    for epoch in range(epochs):
        for x, y in learn:
            optimizer.zero_grad()
            nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        score = judged(model, check)
        if score > best:
            best = score
            kept = described(model)
        print(epoch, score)
    model.load_state_dict(kept["model"])


torch.manual_seed(0)
x = torch.randn(120, 6)
data = TensorDataset(x, (x[:, 0] + torch.randn(120) > 0).long())
model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 2))
fit(model, DataLoader(data, batch_size=24, shuffle=True), DataLoader(data, batch_size=60), 20)
