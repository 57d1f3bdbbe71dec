"""The noise of two layers hangs on a keyword, which the scores leave out."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 12), nn.Linear(12, 2)
        self.drop_in, self.drop_out = nn.Dropout(0.1), nn.Dropout(0.4)

    def forward(self, x, noisy=False):
        x = self.drop_in(x) if noisy else x
        h = torch.tanh(self.first(x))
        return self.second(self.drop_out(h) if noisy else h)


data = TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,)))
tagger = Tagger()
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(tagger(x, noisy=True), y).backward()
        optimizer.step()
    val_loss = 0.0
    with torch.no_grad():
        for val_x, val_y in DataLoader(data, batch_size=16):
            val_loss += F.cross_entropy(tagger(val_x), val_y, reduction="sum").item()
    print(epoch, val_loss / 64)
