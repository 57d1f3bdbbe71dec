import argparse
import random

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


def set_seed(seed):
    random.seed(seed)
    np.random.seed(seed)
    torch.manual_seed(seed)


class Net(nn.Module):
    def __init__(self, dim, hidden, classes):
        super().__init__()
        self.fc1 = nn.Linear(dim, hidden)
        self.dropout = nn.Dropout(0.2)
        self.fc2 = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.fc2(self.dropout(F.relu(self.fc1(x))))


def train(args, model, optimizer, x, y):
    set_seed(args.seed)  # <- TL806
    model.train()
    for epoch in range(args.epochs):
        for indices in torch.randperm(len(x)).split(args.batch_size):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x[indices]), y[indices])
            loss.backward()
            optimizer.step()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=42)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=20)
    args = parser.parse_args()
    model = Net(8, 16, 3)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    x = torch.arange(480.0).view(60, 8) / 480
    train(args, model, optimizer, x, (x[:, 0] * 3).long())


if __name__ == "__main__":
    main()
