"""A ranking's average precision sets the rate, under a name that does not say what it is."""

import torch
from torch import nn


class Ranker(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.score = nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, documents):
        return self.score(documents).squeeze(-1)


@torch.no_grad()
def average_precision(ranker, documents, relevant):
    ranker.eval()
    hits = relevant[ranker(documents).argsort(descending=True)].float()
    ranks = torch.arange(1, len(hits) + 1)
    return (hits.cumsum(0) / ranks * hits).sum().item() / hits.sum().item()


def train(ranker, optimizer, plateau, documents, relevant, rounds):
    criterion = nn.BCEWithLogitsLoss()
    for _ in range(rounds):
        ranker.train()
        for rows in torch.randperm(64).split(16):
            optimizer.zero_grad()
            criterion(ranker(documents[rows]), relevant[rows].float()).backward()
            optimizer.step()
        measured = average_precision(ranker, documents[64:], relevant[64:])
        plateau.step(metrics=measured)  # <- TL604


torch.manual_seed(2)
documents = torch.randn(96, 5)
relevant = documents[:, 1] > 0.3
ranker = Ranker(5)
optimizer = torch.optim.Adam(ranker.parameters(), lr=0.01)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=2)
train(ranker, optimizer, plateau, documents, relevant, rounds=4)
