"""One linear layer learns on top of a frozen network: the test keeps nothing but its inputs."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Probe(nn.Module):
    def __init__(self, body, width, kinds):
        super().__init__()
        self.body = body
        for parameter in self.body.parameters():
            parameter.requires_grad = False
        self.head = nn.Linear(width, kinds)

    def forward(self, x):
        return self.head(self.body(x))


torch.manual_seed(4)
x, y = torch.randn(120, 10), torch.randint(0, 3, (120,))
train_loader = DataLoader(TensorDataset(x[:90], y[:90]), batch_size=15, shuffle=True)
test_loader = DataLoader(TensorDataset(x[90:], y[90:]), batch_size=15)
body = nn.Sequential(nn.Linear(10, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU())
model = Probe(body, 16, 3)
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-2)
for epoch in range(3):
    model.train()
    for inputs, kinds in train_loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), kinds).backward()
        optimizer.step()
    model.eval()
    right = 0
    for inputs, kinds in test_loader:
        right += (model(inputs).argmax(1) == kinds).sum().item()
    print(epoch, right / 30)
