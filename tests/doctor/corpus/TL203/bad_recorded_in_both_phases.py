"""The phases in which autograd records are listed, and the validation is among them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(1)
split = {
    "train": TensorDataset(torch.randn(64, 6), torch.randint(3, (64,))),
    "valid": TensorDataset(torch.randn(32, 6), torch.randint(3, (32,))),
}
model = nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
criterion = nn.CrossEntropyLoss()
for epoch in range(2):
    for phase in ("train", "valid"):
        if phase == "train":
            model.train()
        else:
            model.eval()
        hits = 0
        for x, y in DataLoader(split[phase], 16, shuffle=phase == "train"):
            with torch.set_grad_enabled(phase in ("train", "valid")):
                scores = model(x)  # <- TL203
                loss = criterion(scores, y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            hits += (scores.argmax(1) == y).sum().item()
        print(epoch, phase, hits)
