import torch
from torch import nn
from torch.utils.data import DataLoader


class Ranker(nn.Module):
    def __init__(self, features=20):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(features, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, x):
        return self.layers(x).sigmoid()


class Fitting:
    def __init__(self, ranker, data):
        assert isinstance(ranker, Ranker)
        self.ranker = ranker
        self.loader = DataLoader(data, batch_size=32, shuffle=True)
        self.optimizer = torch.optim.SGD(ranker.parameters(), lr=1e-2)

    def epoch(self):
        for x, y in self.loader:
            loss = nn.functional.binary_cross_entropy_with_logits(self.ranker(x), y)  # <- TL402
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
