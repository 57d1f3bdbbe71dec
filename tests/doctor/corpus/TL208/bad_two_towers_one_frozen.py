"""A retrieval model: the picture tower comes from a checkpoint and is locked, the text tower
learns to match it."""

import argparse
import os
import tempfile

import torch
from torch import nn
from torch.nn import functional as F


class Towers(nn.Module):
    def __init__(self):
        super().__init__()
        self.picture = nn.Sequential(
            nn.Linear(9, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 8)
        )
        self.text = nn.Sequential(nn.EmbeddingBag(30, 16), nn.Linear(16, 8))

    def forward(self, pictures, words):
        a = F.normalize(self.picture(pictures), dim=-1)
        b = F.normalize(self.text(words), dim=-1)
        return a @ b.t() / 0.1


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=10)
    args = parser.parse_args()
    torch.manual_seed(0)
    path = os.path.join(tempfile.mkdtemp(), "picture.pt")
    trained = Towers()
    trained.picture(torch.randn(40, 9))
    torch.save(trained.picture.state_dict(), path)

    model = Towers()
    model.picture.load_state_dict(torch.load(path, weights_only=True))
    model.picture.requires_grad_(False)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    model.train()
    for step in range(args.steps):
        logits = model(torch.randn(10, 9), torch.randint(0, 30, (10, 4)))  # <- TL208
        loss = F.cross_entropy(logits, torch.arange(10))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
