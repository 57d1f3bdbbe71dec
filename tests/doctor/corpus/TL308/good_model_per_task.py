import torch
from torch import nn

torch.manual_seed(0)
encoder = nn.Linear(4, 6)
outer = torch.optim.Adam(encoder.parameters(), lr=1e-3)
for task in range(5):
    head = nn.Linear(6, 2)
    inner = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(2):
        x, y = torch.randn(8, 4), torch.randint(0, 2, (8,))
        outer.zero_grad()
        inner.zero_grad()
        nn.functional.cross_entropy(head(encoder(x)), y).backward()
        inner.step()
        outer.step()
