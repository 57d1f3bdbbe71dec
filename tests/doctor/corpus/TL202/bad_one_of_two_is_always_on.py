"""A flag governs one dropout layer; the other one runs in the scores as well."""

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
        if noisy:
            x = self.drop_in(x)
        return self.second(self.drop_out(torch.tanh(self.first(x))))


data = TensorDataset(torch.randn(64, 6), torch.randint(0, 2, (64,)))
tagger = Tagger()
optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        F.cross_entropy(tagger(x, True), y).backward()
        optimizer.step()
    val_loss = 0.0
    with torch.no_grad():
        for val_x, val_y in DataLoader(data, batch_size=16):
            out = tagger(val_x)  # <- TL202
            val_loss += F.cross_entropy(out, val_y, reduction="sum").item()
    print(epoch, val_loss / 64)
