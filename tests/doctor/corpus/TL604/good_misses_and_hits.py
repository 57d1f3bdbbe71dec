"""One schedule watches the hits in `max` mode, one the share without a hit in `min` mode."""

import torch
from torch import nn

torch.manual_seed(1)
users, items = torch.randn(80, 6), torch.randn(50, 6)
liked = (users @ items.T).argmax(1)


def hit_rate(scores, known, first=3):
    return (scores.topk(first, dim=1).indices == known[:, None]).any(1).float().mean().item()


for mode in ("hits", "misses"):
    network = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 50))
    optimizer = torch.optim.Adam(network.parameters(), lr=5e-3)
    rising = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, mode="max", patience=2)
    falling = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
    for epoch in range(4):
        network.train()
        for rows in torch.randperm(60).split(20):
            loss = nn.functional.cross_entropy(network(users[rows]), liked[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        network.eval()
        with torch.no_grad():
            hits = hit_rate(network(users[60:]), liked[60:])
        if mode == "hits":
            rising.step(hits)
        else:
            falling.step(1 - hits)
        print(mode, epoch, hits)
