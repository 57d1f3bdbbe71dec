"""Frozen layers in the optimizer; a generator and a critic that are updated in turn."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(160, 5)
loader = DataLoader(TensorDataset(x), batch_size=16, shuffle=True)

embedding = nn.Linear(5, 16).requires_grad_(False)
model = nn.Sequential(embedding, nn.ReLU(), nn.Linear(16, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for (batch,) in loader:
        optimizer.zero_grad()
        F.mse_loss(model(batch), batch.sum(1, keepdim=True)).backward()
        optimizer.step()

generator, critic = nn.Linear(3, 5), nn.Linear(5, 1)
both = torch.optim.RMSprop([*generator.parameters(), *critic.parameters()], lr=1e-3)
for epoch in range(3):
    for i, (batch,) in enumerate(loader):
        both.zero_grad()
        fake = generator(torch.randn(len(batch), 3))
        if i % 2:
            loss = critic(fake.detach()).mean() - critic(batch).mean()
        else:
            loss = -critic(fake).mean()
        loss.backward()
        both.step()
    print(epoch, loss.item())
