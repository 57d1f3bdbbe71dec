"""Written out, and every pair meant: a score of samples against each target, ranks of one output
among each other, distances to prototypes; and columns against columns."""

import torch
from torch import nn

torch.manual_seed(0)
x, y = torch.randn(96, 4), torch.randn(96)
net, score = nn.Linear(4, 1), nn.Linear(4, 1)
actor, critic = nn.Linear(4, 1), nn.Linear(4, 1)
groups = [net, score, actor, critic]
optimizer = torch.optim.Adam([p for each in groups for p in each.parameters()], lr=1e-2)


def step(loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


for start in range(0, 96, 12):
    xb, yb = x[start : start + 12], y[start : start + 12]
    # The energy score of an ensemble: each sample against each target.
    drawn = net(xb).squeeze(1)
    step((drawn[:, None] - yb).abs().mean() - 0.5 * (drawn[:, None] - drawn).abs().mean())
    # Who is better than whom?
    s = score(xb)
    step(nn.functional.softplus(-(s - s.squeeze(1)) * (yb[:, None] - yb).sign()).mean())
    # Columns against columns, rows against rows.
    wanted = yb[:, None]
    step(((net(xb) - wanted) ** 2).mean() + (score(xb)[:, 0] * yb).mean().square())
    # An advantage, of two models that both give columns.
    step(((actor(xb) - critic(xb)) * wanted).square().mean())
