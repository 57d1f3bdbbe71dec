"""Tags of short signals; the output's activation and the loss are options."""

import argparse

import torch
from torch import nn

ACTIVATIONS = {"sigmoid": nn.Sigmoid, "softplus": nn.Softplus, "none": nn.Identity}


class Tagger(nn.Module):
    def __init__(self, inputs, tags, args):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(inputs, args.width), getattr(nn, args.hidden)())
        self.head = nn.Linear(args.width, tags)
        self.activation = ACTIVATIONS[args.output]()

    def forward(self, x):
        return self.activation(self.head(self.body(x)))


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--hidden", type=str, default="ReLU")
    parser.add_argument("--output", type=str, default="sigmoid", choices=list(ACTIVATIONS))
    parser.add_argument("--loss", type=str, default="BCEWithLogitsLoss")
    parser.add_argument("--optimizer", type=str, default="AdamW")
    return parser.parse_args([])


def train(args):
    torch.manual_seed(0)
    model = Tagger(10, 4, args)
    criterion = getattr(nn, args.loss)()
    optimizer = getattr(torch.optim, args.optimizer)(model.parameters(), lr=1e-3)
    x = torch.randn(64, 10)
    tags = (x[:, :4] > 0).float()
    for epoch in range(2):
        for rows in torch.arange(64).view(4, 16):
            loss = criterion(model(x[rows]), tags[rows])  # <- TL402
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


train(get_args())
