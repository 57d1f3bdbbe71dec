import math

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(12)
VOICES, WIDTH = 8, 20


class CosineLoss(nn.Module):
    """Cross-entropy of the angles to one learned direction for each voice."""

    def __init__(self, width, voices, scale=10.0):
        super().__init__()
        self.directions = nn.Parameter(torch.randn(voices, width) / math.sqrt(width))
        self.scale = scale

    def forward(self, features, voice):
        cosines = F.normalize(features, dim=1) @ F.normalize(self.directions, dim=1).T
        return F.cross_entropy(self.scale * cosines, voice)


prints = torch.randn(VOICES, WIDTH)
voice = torch.randint(VOICES, (480,))
spoken = prints[voice] + 0.6 * torch.randn(480, WIDTH)
loader = DataLoader(TensorDataset(spoken, voice), batch_size=40, shuffle=True)
net = nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, WIDTH))
criterion = CosineLoss(WIDTH, VOICES)
optimizer = torch.optim.Adam(net.parameters(), lr=2e-3)  # <- TL302
for epoch in range(3):
    for sound, who in loader:
        optimizer.zero_grad()
        loss = criterion(net(sound), who)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
