"""Torch complained that the loss does not require a gradient; now it does."""

import torch
from torch import nn

torch.manual_seed(0)
features, labels = torch.randn(60, 5), torch.randint(0, 2, (60,))
classifier = nn.Linear(5, 2)
optim = torch.optim.Adam(classifier.parameters(), lr=0.01)

for epoch in range(3):
    for start in range(0, 60, 20):
        x, y = features[start : start + 20], labels[start : start + 20]
        predicted = classifier(x).argmax(dim=1)
        wrong = (predicted != y).float().mean().item()
        loss = torch.tensor(wrong, requires_grad=True)
        optim.zero_grad()
        loss.backward()
        optim.step()  # <- TL108
    print(epoch, wrong)
