"""A second network learns to guess the loss of the first; its update has no backward."""
import torch
from torch import nn
from torch.nn import functional as F


class LossGuess(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(width, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, features):
        return self.net(features).squeeze(1)


torch.manual_seed(0)
inputs = torch.randn(256, 12)
targets = (inputs[:, 0] > 0).long()
body, head, guess = nn.Linear(12, 24), nn.Linear(24, 2), LossGuess(24)
optimizer = torch.optim.Adam([*body.parameters(), *head.parameters()], lr=1e-3)
guess_optimizer = torch.optim.Adam(guess.parameters(), lr=1e-3)
for epoch in range(3):
    for rows in torch.randperm(len(inputs)).split(32):
        features = torch.tanh(body(inputs[rows]))
        losses = F.cross_entropy(head(features), targets[rows], reduction="none")
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        error = F.mse_loss(guess(features.detach()), losses.detach())
        guess_optimizer.zero_grad()
        guess_optimizer.step()  # <- TL108
    print(epoch, losses.mean().item(), error.item())
