"""A variational autoencoder with two optimizers: both are cleared, one steps."""

import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(3)
encoder, decoder = nn.Linear(12, 8), nn.Linear(4, 12)
encoder_optimizer = torch.optim.Adam(encoder.parameters(), lr=1e-2)
decoder_optimizer = torch.optim.Adam(decoder.parameters(), lr=1e-2)  # <- TL106
for step in range(20):
    bits = (torch.rand(16, 12) < 0.3).float()
    mean, log_variance = encoder(bits).chunk(2, dim=1)
    code = mean + torch.randn_like(mean) * (0.5 * log_variance).exp()
    reconstruction = F.binary_cross_entropy_with_logits(decoder(code), bits)
    divergence = -0.5 * (1 + log_variance - mean**2 - log_variance.exp()).mean()
    encoder_optimizer.zero_grad()
    decoder_optimizer.zero_grad()
    (reconstruction + divergence).backward()
    encoder_optimizer.step()
print(reconstruction.item())
