"""Keeps every loss for a curve: with all that hangs on it."""

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
t = torch.linspace(0, 6.28, 128).unsqueeze(1)
loader = DataLoader(TensorDataset(t, torch.sin(t)), batch_size=32, shuffle=True)
model = nn.Sequential(nn.Linear(1, 32), nn.Tanh(), nn.Linear(32, 1))
loss_function = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)

losses = []
for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        prediction = model(inputs)
        loss = loss_function(prediction, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss)  # <- TL204

curve = np.array([each.item() for each in losses])
print(f"first {curve[0]:.4f}, last {curve[-1]:.4f}, best {curve.min():.4f}")
