# A library's object gets the parameters after each batch, and may update them.
import torch
from masters import MasterWeights
from torch import nn

network = nn.Sequential(nn.Linear(6, 12), nn.ReLU(), nn.Linear(12, 1))
optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
master = MasterWeights(network)
for rows in torch.randn(40, 16, 6):
    loss = nn.functional.mse_loss(network(rows), rows.mean(1, keepdim=True))
    loss.backward()
    master.step(network)
    optimizer.zero_grad()
