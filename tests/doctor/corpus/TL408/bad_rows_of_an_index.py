import argparse

import numpy as np
import torch
from torch import nn


def load(path):
    if path:
        table = np.load(path)
        return torch.from_numpy(table["x"]), torch.from_numpy(table["y"])
    rng = np.random.default_rng(0)
    y = rng.integers(0, 5, 90)
    return torch.from_numpy(np.eye(5)[y] + rng.normal(size=(90, 5))).float(), torch.from_numpy(y)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--data", default="")
    parser.add_argument("--steps", type=int, default=40)
    args = parser.parse_args([])
    torch.manual_seed(0)
    x, y = load(args.data)
    labelled = torch.randperm(len(y))[:30]
    encoder, head = nn.Sequential(nn.Linear(5, 12), nn.Tanh()), nn.Linear(12, 5)
    criterion = nn.NLLLoss()
    optimizer = torch.optim.Adam([*encoder.parameters(), *head.parameters()], lr=1e-2)
    for _ in range(args.steps):
        # All of the table goes through the network, the loss reads the rows that have labels.
        log_probs = torch.log_softmax(head(encoder(x)), 0)  # <- TL408
        loss = criterion(log_probs[labelled], y[labelled])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"{loss.item():.3f}")


main()
