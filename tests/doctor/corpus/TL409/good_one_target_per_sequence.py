"""The inputs are padded, the targets are not: a label for a whole sequence, the item that comes
next, a score for pairs of sequences; and batches that need no filling."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, words=20, classes=20):
        super().__init__()
        self.bag = nn.Embedding(words, 12, padding_idx=0)
        self.out = nn.Linear(12, classes)

    def forward(self, x):
        real = (x != 0).unsqueeze(-1)
        return self.out((self.bag(x) * real).sum(1) / real.sum(1).clamp(min=1))


torch.manual_seed(0)
sentences = [torch.randint(1, 20, (int(n),)) for n in torch.randint(2, 9, (64,))]
x = pad_sequence(sentences, batch_first=True)
labels = torch.tensor([int(each[-1]) for each in sentences])
model = Classifier()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for xb, yb in DataLoader(TensorDataset(x, labels), batch_size=8, shuffle=True):
        loss = F.cross_entropy(model(xb), yb)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())

# As many labels for each sequence as it has positions, and no filling in any of them.
tags = nn.Sequential(nn.Embedding(20, 12, padding_idx=0), nn.Linear(12, 20))
optimizer = torch.optim.Adam(tags.parameters(), lr=1e-2)
blocks = torch.randint(1, 20, (12, 8, 10))
for block in blocks:
    loss = F.cross_entropy(tags(block[:, :-1]).flatten(0, 1), block[:, 1:].flatten())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
