"""Attention over a sequence of which nothing is left."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(5, 1)
        self.out = nn.Linear(5, 2)

    def forward(self, x, kept):
        scores = self.score(x).squeeze(-1).masked_fill(~kept, float("-inf"))
        weights = torch.softmax(scores, dim=1)  # <- TH101
        return self.out((weights.unsqueeze(-1) * x).sum(dim=1))


def main():
    torch.manual_seed(0)
    kept = torch.rand(60, 4) < 0.9
    kept[:, 0] = True
    kept[44] = False
    data = TensorDataset(torch.randn(60, 4, 5), kept, torch.randint(0, 2, (60,)))
    model = Pool()
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    for x, mask, y in DataLoader(data, batch_size=6, shuffle=True):
        loss = criterion(model(x, mask), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
