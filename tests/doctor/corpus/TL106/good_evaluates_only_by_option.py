"""`--evaluate` ends the program early; without it the training steps."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--evaluate", action="store_true")
parser.add_argument("--resume", default="")
args = parser.parse_args()
torch.manual_seed(0)


def evaluate(model, data):
    model.eval()
    with torch.no_grad():
        return sum(nn.functional.mse_loss(model(x), y).item() for x, y in data) / len(data)


def main():
    model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    data = [(x, x.sum(1, keepdim=True)) for x in torch.randn(5, 8, 4)]
    if args.resume and not args.evaluate:
        optimizer.load_state_dict(torch.load(args.resume, weights_only=True))
    if args.evaluate:
        print(evaluate(model, data))
        return
    for epoch in range(3):
        model.train()
        for x, y in data:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        print(epoch, evaluate(model, data))


main()
