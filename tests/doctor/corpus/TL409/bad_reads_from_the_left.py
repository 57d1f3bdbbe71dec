"""Baskets, filled in front so that the newest item is last; accumulated over two batches."""

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

ITEMS, LONGEST = 25, 10


def front_filled(rows):
    filled = torch.zeros(len(rows), LONGEST + 1, dtype=torch.long)
    for number, row in enumerate(rows):
        filled[number, -len(row) :] = row
    return filled


class NextItem(nn.Module):
    def __init__(self):
        super().__init__()
        self.items = nn.Embedding(ITEMS, 8, padding_idx=0)
        self.rnn = nn.RNN(8, 16, batch_first=True)
        self.next = nn.Linear(16, ITEMS)

    def forward(self, basket):
        return self.next(self.rnn(self.items(basket))[0]).movedim(-1, 1)


torch.manual_seed(0)
rows = [torch.randint(1, ITEMS, (int(n),)) for n in torch.randint(3, LONGEST + 1, (96,))]
loader = DataLoader(TensorDataset(front_filled(rows)), batch_size=8, shuffle=True)
net = NextItem()
opt = torch.optim.Adagrad(net.parameters(), lr=0.05)
cross_entropy = nn.CrossEntropyLoss()
every = 2
for epoch in range(2):
    for i, (basket,) in enumerate(loader):
        loss = cross_entropy(net(basket[:, :-1]), basket[:, 1:]) / every  # <- TL409
        loss.backward()
        if (i + 1) % every == 0:
            opt.step()
            opt.zero_grad()
