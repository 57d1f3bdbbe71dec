# The average of a library steps, the optimizer does not.
import torch
from averages import EMAModel
from torch import nn

network = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
average = EMAModel(network.parameters(), decay=0.99)
for rows in torch.randn(40, 16, 6):
    loss = nn.functional.mse_loss(network(rows), rows.mean(1, keepdim=True))
    loss.backward()  # <- TL106
    optimizer.zero_grad()
    average.step(network.parameters())
