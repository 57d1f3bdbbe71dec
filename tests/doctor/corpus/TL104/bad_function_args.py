import argparse

import torch
import torch.nn as nn


def train(args, model, loader, criterion, optimizer):
    model.train()
    for step, (x, y) in enumerate(loader):
        out = model(x)
        loss = criterion(out, y)
        optimizer.zero_grad()
        grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), args.max_grad_norm)  # <- TL104
        loss.backward()
        optimizer.step()
        if step % args.log_every == 0:
            print(f"{step:3d} loss {loss.item():.3f} norm {float(grad_norm):.3f}")


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--max_grad_norm", type=float, default=1.0)
    p.add_argument("--log_every", type=int, default=2)
    args = p.parse_args()
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 3))
    loader = [(torch.randn(8, 5), torch.randint(0, 3, (8,))) for _ in range(6)]
    train(args, model, loader, nn.CrossEntropyLoss(), torch.optim.Adam(model.parameters(), lr=1e-3))


if __name__ == "__main__":
    main()
