"""A loss network that compares features: it was trained, is frozen, and is left as it was made."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
critic = nn.Sequential(
    nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Conv2d(4, 4, 3)
)
head = nn.Linear(4 * 36, 5)
warm = torch.optim.Adam([*critic.parameters(), *head.parameters()], lr=1e-3)
for _ in range(5):
    pictures, labels = torch.randn(12, 1, 8, 8), torch.randint(0, 5, (12,))
    warm.zero_grad()
    F.cross_entropy(head(critic(pictures).flatten(1)), labels).backward()
    warm.step()

for parameter in critic.parameters():
    parameter.requires_grad_(False)

denoiser = nn.Conv2d(1, 1, 3, padding=1)
optimizer = torch.optim.Adam(denoiser.parameters(), lr=1e-3)
for step in range(12):
    clean = torch.randn(12, 1, 8, 8)
    restored = denoiser(clean + 0.1 * torch.randn_like(clean))
    loss = F.l1_loss(critic(restored), critic(clean.detach()))  # <- TL208
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
