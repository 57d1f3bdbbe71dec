"""What learns is handed to the function that freezes the rest, which forgets the second part."""

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


def groups(net, lr):
    return [
        {"params": net.bridge.parameters(), "lr": 3 * lr},
        {"params": net.head.parameters(), "lr": lr},
    ]


def tune(net, steps):
    freeze_except(net, kept="head")
    optimizer = torch.optim.AdamW(groups(net, 1e-3))  # <- TL309
    for _ in range(steps):
        x = torch.randn(16, 6)
        loss = nn.functional.cross_entropy(net(x), x[:, :3].argmax(1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


print(tune(Tagger(), 30))
