import argparse
import math

import torch
import torch.nn as nn
from torch.optim.lr_scheduler import LambdaLR
from torch.utils.data import DataLoader, TensorDataset


def linear_schedule_with_warmup(optimizer, warmup, total):
    def factor(step):
        if step < warmup:
            return step / max(1, warmup)
        return max(0.0, (total - step) / max(1, total - warmup))

    return LambdaLR(optimizer, factor)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--accum", type=int, default=4)
    args = parser.parse_args()
    torch.manual_seed(42)
    torch.set_num_threads(1)
    x = torch.randn(256, 8)
    y = x[:, :2].argmax(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=8, shuffle=True, drop_last=True)
    model = nn.Linear(8, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    updates = math.ceil(len(loader) / args.accum) * args.epochs
    scheduler = linear_schedule_with_warmup(optimizer, int(0.1 * updates), updates)
    cosine_model = nn.Linear(8, 2)
    cosine_optimizer = torch.optim.AdamW(cosine_model.parameters(), lr=1e-2)
    cosine = torch.optim.lr_scheduler.CosineAnnealingLR(
        cosine_optimizer, T_max=len(loader) // args.accum * args.epochs
    )

    for epoch in range(args.epochs):
        for step, (inputs, labels) in enumerate(loader):
            loss = nn.functional.cross_entropy(model(inputs), labels) / args.accum
            loss.backward()
            other = nn.functional.cross_entropy(cosine_model(inputs), labels) / args.accum
            other.backward()
            if (step + 1) % args.accum == 0 or step + 1 == len(loader):
                optimizer.step()
                scheduler.step()
                optimizer.zero_grad()
                cosine_optimizer.step()
                cosine.step()
                cosine_optimizer.zero_grad()
        print(epoch, scheduler.get_last_lr(), cosine.get_last_lr())


if __name__ == "__main__":
    main()
