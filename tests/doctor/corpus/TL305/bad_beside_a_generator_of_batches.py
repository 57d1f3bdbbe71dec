"""The loop over a generator's batches stands right below a new AdamW, in every epoch."""

import torch
from torch import nn, optim


def shuffled(images, labels, size):
    for rows in torch.randperm(len(images)).split(size):
        yield images[rows], labels[rows]


def fit(model, images, labels, *, epochs=3, size=20):
    for epoch in range(epochs):
        optimizer = optim.AdamW(model.parameters(), lr=2e-3)  # <- TL305
        total = 0.0
        for x, y in shuffled(images, labels, size):
            x = x.to(torch.float32) / 2
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(y)
        print(epoch, total / len(labels))


if __name__ == "__main__":
    torch.manual_seed(1)
    images, labels = torch.randn(120, 1, 5, 5), torch.randint(0, 3, (120,))
    model = nn.Sequential(nn.Flatten(), nn.Linear(25, 16), nn.ReLU(), nn.Linear(16, 3))
    fit(model, images, labels)
