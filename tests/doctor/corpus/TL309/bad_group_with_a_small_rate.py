import torch
from torch import nn


def build():
    backbone = nn.Sequential(nn.Linear(4, 8), nn.ReLU())
    head = nn.Linear(8, 2)
    backbone.requires_grad_(False)
    return backbone, head


torch.manual_seed(0)
backbone, head = build()
optimizer = torch.optim.AdamW(  # <- TL309
    [
        {"params": backbone.parameters(), "lr": 1e-5},
        {"params": head.parameters(), "lr": 1e-3},
    ]
)
for step in range(5):
    x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
    loss = nn.functional.cross_entropy(head(backbone(x)), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
