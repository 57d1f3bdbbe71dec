"""A numpy seed for the negatives; torch has its seed from the start."""
import argparse

import numpy as np
import torch
from torch import nn


def seed_everything(seed):
    torch.manual_seed(seed)
    torch.cuda.manual_seed_all(seed)


def main():
    args = argparse.Namespace(seed=3, steps=10)
    seed_everything(args.seed)
    model = nn.Embedding(50, 8)
    np.random.seed(args.seed)
    negatives = torch.from_numpy(np.random.randint(0, 50, (args.steps, 16)))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for batch in negatives:
        optimizer.zero_grad()
        loss = model(batch).square().mean()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
