"""An argument says when dropout runs, and it is off unless a call asks for it."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Words(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.dropout = nn.Dropout(p)
        self.out = nn.Linear(8, 3)

    def forward(self, x, is_training=False):
        h = self.embed(x).mean(1)
        if is_training:
            h = self.dropout(h)
        return self.out(h)


words, kinds = torch.randint(0, 20, (64, 5)), torch.randint(0, 3, (64,))
model = Words()
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(TensorDataset(words, kinds), batch_size=16, shuffle=True):
    model.zero_grad()
    F.cross_entropy(model(x, True), y).backward()
    optimizer.step()
test_loader = DataLoader(TensorDataset(words, kinds), batch_size=16)
right = 0
with torch.no_grad():
    for test_words, test_kind in test_loader:
        right += (model(test_words).argmax(1) == test_kind).sum().item()
print(right / 64)
