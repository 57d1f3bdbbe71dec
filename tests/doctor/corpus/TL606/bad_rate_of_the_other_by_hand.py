"""The program sets the rate of the decoder by hand, and forgets the schedule of the encoder."""

import torch
from torch import nn

encoder, decoder = nn.Linear(8, 3), nn.Linear(3, 8)
encoding = torch.optim.Adam(encoder.parameters(), lr=0.01)
decoding = torch.optim.Adam(decoder.parameters(), lr=0.01)
decay = torch.optim.lr_scheduler.StepLR(encoding, step_size=2)  # <- TL606
for epoch in range(6):
    decoding.param_groups[0]["lr"] = 0.01 * 0.7**epoch
    for x in torch.randn(6, 16, 8):
        encoding.zero_grad()
        decoding.zero_grad()
        (decoder(encoder(x)) - x).square().mean().backward()
        encoding.step()
        decoding.step()
    print(epoch, decay.get_last_lr())
