"""Encoder and decoder with an optimizer each: the decoder has a second loss of its own."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
encoder, decoder = nn.Linear(6, 2), nn.Linear(2, 6)
opt_e = torch.optim.Adam(encoder.parameters(), lr=1e-3)
opt_d = torch.optim.Adam(decoder.parameters(), lr=1e-3)
data = torch.utils.data.DataLoader(torch.randn(48, 6), batch_size=16)

for epoch in range(3):
    for x in data:
        opt_e.zero_grad()
        opt_d.zero_grad()
        reconstruction = nn.functional.mse_loss(decoder(encoder(x)), x)
        reconstruction.backward()
        smooth = decoder(torch.randn(16, 2)).diff(dim=1).pow(2).mean()
        smooth.backward()
        opt_e.step()
        opt_d.step()
    print(epoch, reconstruction.item(), smooth.item())
