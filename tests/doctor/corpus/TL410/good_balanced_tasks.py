import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
trunk, left, right = nn.Linear(5, 8), nn.Linear(8, 1), nn.Linear(8, 1)
optimizer = torch.optim.Adam(
    [*trunk.parameters(), *left.parameters(), *right.parameters()], lr=1e-3
)
task_weights = nn.Parameter(torch.ones(2))
weight_optimizer = torch.optim.Adam([task_weights], lr=0.01)

for step in range(5):
    x, a, b = torch.randn(12, 5), torch.randn(12, 1), torch.randn(12, 1)
    hidden = torch.relu(trunk(x))
    losses = [F.mse_loss(left(hidden), a), F.mse_loss(right(hidden), b)]
    norms = torch.stack(
        [torch.autograd.grad(each, trunk.weight, retain_graph=True)[0].norm() for each in losses]
    )
    balance = (task_weights * norms - norms.mean()).abs().sum()
    weight_optimizer.zero_grad()
    balance.backward()
    weight_optimizer.step()
    weights = task_weights.detach()
    loss = weights[0] * losses[0] + weights[1] * losses[1]
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
