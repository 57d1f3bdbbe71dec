import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randint(0, 2, (24,))), 8, shuffle=True)
backbone, head = nn.Linear(4, 8), nn.Linear(8, 2)
optimizer = torch.optim.Adam(
    [{"params": backbone.parameters(), "lr": 1e-4}, {"params": head.parameters(), "lr": 1e-3}]
)
backbone.requires_grad_(False)
for epoch in range(20):
    if epoch == 5:
        backbone.requires_grad_(True)
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(head(torch.relu(backbone(x))), y).backward()
        optimizer.step()
