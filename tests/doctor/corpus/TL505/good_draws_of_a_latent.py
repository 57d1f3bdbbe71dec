"""Several draws of a latent for each update: the sum over them is the objective."""

import torch
from torch import nn

torch.manual_seed(0)
decoder = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 4))
optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)
data = torch.randn(30, 4)
for step in range(10):
    chosen = data[torch.randint(30, (6,))]
    optimizer.zero_grad()
    for draw in range(4):
        z = torch.randn(6, 2)
        error = nn.functional.mse_loss(decoder(z), chosen)
        error.backward()
    optimizer.step()
