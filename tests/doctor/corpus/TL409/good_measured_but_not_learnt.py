"""The loss over all positions is printed for comparison, and by an evaluation; what is learnt from
counts the words alone."""

import torch
from torch import nn
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

PAD = 0


class Net(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.words = nn.Embedding(words, 12, padding_idx=PAD)
        self.rnn = nn.GRU(12, 12, batch_first=True)
        self.head = nn.Linear(12, words)

    def forward(self, x):
        return self.head(self.rnn(self.words(x))[0]).transpose(1, 2)


def collate(rows):
    rows = pad_sequence(rows, batch_first=True, padding_value=PAD)
    return rows[:, :-1], rows[:, 1:]


def evaluate(net, loader):
    net.eval()
    with torch.no_grad():
        total = sum(nn.functional.cross_entropy(net(x), y).item() for x, y in loader)
    net.train()
    return total / len(loader)


torch.manual_seed(0)
rows = [torch.randint(1, 18, (int(n),)) for n in torch.randint(4, 12, (64,))]
loader = DataLoader(rows, batch_size=8, shuffle=True, collate_fn=collate)
net = Net(18)
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
for epoch in range(2):
    for x, y in loader:
        scores = net(x)
        everything = nn.functional.cross_entropy(scores, y)
        loss = nn.functional.cross_entropy(scores, y, ignore_index=PAD)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item(), everything.item(), evaluate(net, loader))
