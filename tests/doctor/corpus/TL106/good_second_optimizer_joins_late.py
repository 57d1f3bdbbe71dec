"""The encoder rests for the first epochs: its gradients are cleared, and it steps later."""

import torch
from torch import nn

torch.manual_seed(0)
encoder, decoder = nn.Linear(8, 3), nn.Linear(3, 8)
slow = torch.optim.Adam(encoder.parameters(), lr=1e-3)
fast = torch.optim.Adam(decoder.parameters(), lr=1e-2)
for epoch in range(8):
    for _ in range(4):
        x = torch.randn(16, 8)
        error = (decoder(encoder(x)) - x).pow(2).mean()
        slow.zero_grad()
        fast.zero_grad()
        error.backward()
        fast.step()
        if epoch >= 5:
            slow.step()
    print(epoch, error.item())
