"""The first block is frozen, but two more learn behind it: the test stores what these need."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(10, 32), nn.ReLU())
        self.second = nn.Sequential(nn.Linear(32, 32), nn.ReLU())
        self.head = nn.Linear(32, 3)

    def forward(self, x):
        return self.head(self.second(self.first(x)))


torch.manual_seed(4)
x, y = torch.randn(120, 10), torch.randint(0, 3, (120,))
train_loader = DataLoader(TensorDataset(x[:90], y[:90]), batch_size=15, shuffle=True)
test_loader = DataLoader(TensorDataset(x[90:], y[90:]), batch_size=15)
tagger = Tagger()
for parameter in tagger.first.parameters():
    parameter.requires_grad = False
learning = [*tagger.second.parameters(), *tagger.head.parameters()]
optimizer = torch.optim.Adam(learning, lr=1e-2)
for epoch in range(3):
    tagger.train()
    for inputs, kinds in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(tagger(inputs), kinds).backward()
        optimizer.step()
    tagger.eval()
    right = 0
    for inputs, kinds in test_loader:
        right += (tagger(inputs).argmax(1) == kinds).sum().item()  # <- TL203
    print(epoch, right / 30)
