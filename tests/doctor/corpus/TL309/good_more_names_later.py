"""The function that freezes the rest is called again in a later epoch, with more to keep."""

import torch
from torch import nn

torch.manual_seed(9)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.bridge, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 3)

    def forward(self, x):
        return self.head(torch.relu(self.bridge(torch.relu(self.body(x)))))


def freeze_except(net, kept):
    for name, each in net.named_parameters():
        each.requires_grad_(name.startswith(kept))


def tune(net, epochs):
    freeze_except(net, kept="head")
    optimizer = torch.optim.AdamW(
        [{"params": net.bridge.parameters(), "lr": 3e-3}, {"params": net.head.parameters()}]
    )
    for epoch in range(epochs):
        if epoch == 4:
            freeze_except(net, kept=("head", "bridge"))
        for _ in range(5):
            x = torch.randn(16, 6)
            loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


print(tune(Tagger(), 8))
