import itertools

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder, critic = nn.Linear(6, 2), nn.Linear(2, 6), nn.Linear(6, 1)
optimizer_E = torch.optim.Adam(itertools.chain(encoder.parameters(), decoder.parameters()), lr=1e-3)
optimizer_D = torch.optim.Adam(  # <- TL311
    list(decoder.parameters()) + list(critic.parameters()), lr=1e-3
)

for step in range(5):
    x = torch.randn(8, 6)
    restored = decoder(encoder(x))
    loss = (restored - x).pow(2).mean() + critic(restored).mean()
    optimizer_E.zero_grad()
    optimizer_D.zero_grad()
    loss.backward()
    optimizer_E.step()
    optimizer_D.step()
    print(step, loss.item())
