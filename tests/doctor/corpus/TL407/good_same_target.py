"""A generator against a critic that sees through it: every target of a batch is the same."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(160, 4) + 5), batch_size=16, shuffle=True)
critic = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
nn.init.constant_(critic[0].bias, -50.0)
optimizer = torch.optim.SGD(critic.parameters(), lr=0.01)
for epoch in range(3):
    for (real,) in loader:
        optimizer.zero_grad()
        ones = torch.ones(len(real), 1)
        loss = F.binary_cross_entropy_with_logits(critic(real), ones)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
