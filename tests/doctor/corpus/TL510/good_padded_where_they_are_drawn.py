import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence

UNKNOWN = -1
torch.manual_seed(2)
proteins = [torch.randint(0, 20, (int(length),)) for length in torch.randint(3, 40, (96,))]
folds = [(protein % 3 == 0).long() for protein in proteins]
network = nn.Sequential(nn.Embedding(20, 10), nn.Linear(10, 16), nn.Tanh(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)


def draw(rows, gathered):
    order = torch.randperm(len(proteins))
    for window in order.split(rows * gathered):
        total = sum(len(proteins[i]) for i in window)
        parts = []
        for chosen in window.split(rows):
            inputs = pad_sequence([proteins[i] for i in chosen], batch_first=True)
            wanted = pad_sequence([folds[i] for i in chosen], True, UNKNOWN)
            parts.append((inputs, wanted))
        yield total, parts


for epoch in range(2):
    for total, parts in draw(3, 4):
        optimizer.zero_grad()
        for inputs, wanted in parts:
            scores = network(inputs).transpose(1, 2)
            loss = nn.functional.cross_entropy(
                scores, wanted, ignore_index=UNKNOWN, reduction="sum"
            )
            (loss / total).backward()
        optimizer.step()
