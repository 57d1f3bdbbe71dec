"""MAML on sine waves: the outer losses of the tasks are summed up, and sent back together."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.func import functional_call


def sample_task():
    amplitude, phase = torch.rand(1) * 4 + 0.1, torch.rand(1) * 3.14
    x = torch.rand(20, 1) * 10 - 5
    y = amplitude * torch.sin(x + phase)
    return (x[:10], y[:10]), (x[10:], y[10:])


def adapt(model, params, x, y, lr=0.01):
    loss = F.mse_loss(functional_call(model, params, (x,)), y)
    grads = torch.autograd.grad(loss, list(params.values()), create_graph=True)
    return {name: p - lr * g for (name, p), g in zip(params.items(), grads)}


def main(meta_steps=4, tasks=3):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(1, 24), nn.ReLU(), nn.Linear(24, 1))
    meta_optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(meta_steps):
        meta_optimizer.zero_grad()
        outer_losses = []
        for _ in range(tasks):
            (xs, ys), (xq, yq) = sample_task()
            fast = adapt(model, dict(model.named_parameters()), xs, ys)
            outer_losses.append(F.mse_loss(functional_call(model, fast, (xq,)), yq))
        outer_loss = sum(outer_losses) / tasks
        outer_loss.backward()
        meta_optimizer.step()
        print(f"step {step}: {outer_loss.item():.4f}")


if __name__ == "__main__":
    main()
