"""The gradients of each update are written down, and nobody ever looks at them."""

import torch
import torch.nn as nn


def train_epoch(model, batches, optimizer, gradients):
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters()})  # <- TH106
        optimizer.step()
    return loss.item()


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(16, 300), nn.GELU(), nn.Linear(300, 300), nn.GELU(), nn.Linear(300, 1))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.randn(640, 16)
    y = x.prod(dim=1, keepdim=True)
    gradients = []
    for epoch in range(21):
        order = torch.randperm(len(x)).split(32)
        batches = [(x[rows], y[rows]) for rows in order]
        loss = train_epoch(model, batches, optimizer, gradients)
        print(f"epoch {epoch}: loss {loss:.4f}, {len(gradients)} updates")


if __name__ == "__main__":
    main()
