"""As many blocks as an option says, none of which knows the mode: nothing to switch."""

import argparse

import torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.wide, self.narrow = nn.Linear(dim, 2 * dim), nn.Linear(2 * dim, dim)

    def forward(self, x):
        return x + self.narrow(F.silu(self.wide(self.norm(x))))


class Predictor(nn.Module):
    def __init__(self, words, dim, depth):
        super().__init__()
        self.embed = nn.Embedding(words, dim)
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.tail = nn.Sequential(*[Block(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, words)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(self.tail(x))


@torch.no_grad()
def perplexity_on_validation_data(model, tokens, batch=16):
    total = 0.0
    for first in range(0, len(tokens) - 1, batch):
        x, y = tokens[first : first + batch], tokens[first + 1 : first + batch + 1]
        total += F.cross_entropy(model(x[: len(y)]), y, reduction="sum").item()
    return total / (len(tokens) - 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--depth", type=int, default=5)
    args = parser.parse_args()
    tokens = torch.arange(600) * 7 % 20
    model = Predictor(20, 8, args.depth)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for step in range(130):
        model.train()
        first = torch.randint(0, 480, (1,)).item()
        x, y = tokens[first : first + 16], tokens[first + 1 : first + 17]
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 40 == 39:
            model.eval()
            print(step, loss.item())
    print(perplexity_on_validation_data(model, tokens[500:]))


if __name__ == "__main__":
    main()
