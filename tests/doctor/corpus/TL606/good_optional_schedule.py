import argparse

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def build_scheduler(args, optimizer):
    if args.scheduler == "cosine":
        return torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)
    if args.scheduler == "step":
        return torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
    return None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--scheduler", default="cosine", choices=["none", "cosine", "step"])
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--warmup", type=int, default=1)
    args = parser.parse_args()

    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(128, 5)
    loader = DataLoader(TensorDataset(x, x.sum(dim=1, keepdim=True)), batch_size=16, shuffle=True)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scheduler = build_scheduler(args, optimizer)

    for epoch in range(args.epochs):
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
        if scheduler is not None and epoch >= args.warmup:
            scheduler.step()
        print(epoch, loss.item(), optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main()
