"""The heads in a list get the weights of the last run one by one; but the optimizer, which trains
what is before them, does not have them."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


class Forked(nn.Module):
    def __init__(self, sizes):
        super().__init__()
        self.body = nn.Linear(4, 6)
        self.heads = []  # <- TL303
        for size in sizes:
            self.heads.append(nn.Linear(6, size))

    def forward(self, x):
        x = torch.relu(self.body(x))
        return [head(x) for head in self.heads]


torch.manual_seed(0)
last = [head.state_dict() for head in Forked((2, 3)).heads]
model = Forked((2, 3))
for i, weights in enumerate(last):
    model.heads[i].load_state_dict(weights)
x = torch.randn(64, 4)
data = TensorDataset(x, (x[:, 0] > 0).long(), x[:, :3].argmax(1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for batch, sign, largest in DataLoader(data, batch_size=16, shuffle=True):
        first, second = model(batch)
        optimizer.zero_grad()
        (F.cross_entropy(first, sign) + F.cross_entropy(second, largest)).backward()
        optimizer.step()
