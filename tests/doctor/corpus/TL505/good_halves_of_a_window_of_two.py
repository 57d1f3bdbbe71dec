"""Two losses and two micro-batches an update: the 2 is the window's, the losses are a sum."""

import torch
from torch import nn


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(6, 12)
        self.kind, self.size = nn.Linear(12, 3), nn.Linear(12, 1)

    def forward(self, x):
        seen = torch.tanh(self.body(x))
        return self.kind(seen), self.size(seen).squeeze(1)


torch.manual_seed(3)
x = torch.randn(128, 6)
data = torch.utils.data.TensorDataset(x, torch.randint(0, 3, (128,)), x.sum(1))
loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True)
net = Pair()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
for epoch in range(3):
    for step, (inputs, kinds, sizes) in enumerate(loader):
        kind, size = net(inputs)
        loss = nn.functional.cross_entropy(kind, kinds) + nn.functional.mse_loss(size, sizes)
        loss = loss / 2
        loss.backward()
        if step % 2 == 1:
            optimizer.step()
            optimizer.zero_grad()
