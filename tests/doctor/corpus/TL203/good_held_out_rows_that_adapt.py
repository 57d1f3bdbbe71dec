"""The validation adapts to a part of each task, so it needs gradients while it measures."""
import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
optimizer = torch.optim.SGD(net.parameters(), lr=0.02)


def validate(net, held_out):
    total = 0.0
    for rows in held_out.split(20):
        known, asked = rows[:10], rows[10:]
        inner = nn.functional.mse_loss(net(known[:, :3]), known[:, 3:])
        grads = torch.autograd.grad(inner, net.parameters())
        weights = {n: p - 0.05 * g for (n, p), g in zip(net.named_parameters(), grads)}
        found = torch.func.functional_call(net, weights, (asked[:, :3],))
        total += (found - asked[:, 3:]).abs().mean().item()
    return total / len(held_out.split(20))


data = torch.randn(300, 4)
for epoch in range(3):
    for rows in data[:200].split(20):
        loss = nn.functional.mse_loss(net(rows[:, :3]), rows[:, 3:])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, validate(net, data[200:]))
