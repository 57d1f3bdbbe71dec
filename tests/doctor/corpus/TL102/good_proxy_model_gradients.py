"""A worker computes the gradients; the server's copy gets them, clips by value and steps."""

import copy

import torch
from torch import nn

torch.manual_seed(0)
server = nn.Sequential(nn.Linear(5, 8), nn.Tanh(), nn.Linear(8, 1))
worker = copy.deepcopy(server)
optimizer = torch.optim.Adam(server.parameters(), lr=1e-2)
for update in range(12):
    worker.load_state_dict(server.state_dict())
    x = torch.randn(12, 5)
    worker.zero_grad()
    nn.functional.mse_loss(worker(x), x.sum(1, keepdim=True)).backward()
    for mine, theirs in zip(server.parameters(), worker.parameters()):
        mine.grad = theirs.grad.clone()
    nn.utils.clip_grad_value_(server.parameters(), 0.5)
    optimizer.step()
