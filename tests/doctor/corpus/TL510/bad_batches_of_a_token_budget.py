"""Batches of about as many tokens, and so of different numbers of sequences; a class for each."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Signals(Dataset):
    def __init__(self):
        self.signals = [torch.randn(int(n), 4) for n in torch.randint(5, 40, (90,))]

    def __len__(self):
        return len(self.signals)

    def __getitem__(self, i):
        return self.signals[i], int(self.signals[i].mean() > 0)


class Budget:
    """Indices whose signals have no more than so many steps in all."""

    def __init__(self, data, most):
        self.data, self.most = data, most

    def __iter__(self):
        batch, total = [], 0
        for i in torch.randperm(len(self.data)).tolist():
            batch.append(i)
            total += len(self.data.signals[i])
            if total > self.most:
                yield batch
                batch, total = [], 0

    def __len__(self):
        return 16


def collate(samples):
    return torch.stack([s.mean(0) for s, _ in samples]), torch.tensor([y for _, y in samples])


def main(accumulate=3):
    torch.manual_seed(0)
    data = Signals()
    loader = DataLoader(data, batch_sampler=Budget(data, 100), collate_fn=collate)
    net = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 2))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    waiting = 0
    for _ in range(2):
        for x, y in loader:
            loss = nn.functional.cross_entropy(net(x), y)  # <- TL510
            loss.div(accumulate).backward()
            waiting += 1
            if waiting == accumulate:
                optimizer.step()
                optimizer.zero_grad()
                waiting = 0


main()
