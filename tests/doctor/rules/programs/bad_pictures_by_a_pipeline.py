# A library's pipeline gets the network for pictures after each epoch; the optimizer never steps.
import torch
from pipelines import Pipeline
from torch import nn

denoiser = nn.Sequential(nn.Linear(8, 32), nn.SiLU(), nn.Linear(32, 8))
optimizer = torch.optim.Adam(denoiser.parameters(), lr=1e-4)
for epoch in range(3):
    for clean in torch.randn(20, 16, 8):
        noise = torch.randn_like(clean)
        optimizer.zero_grad()
        nn.functional.mse_loss(denoiser(clean + noise), noise).backward()  # <- TL106
    Pipeline.from_pretrained("base", denoiser=denoiser)(steps=50)
