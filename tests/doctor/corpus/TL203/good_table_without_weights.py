"""The module looks the attributes of each class up in a table that a file had: it has no weights,
so autograd has nothing to record."""

import io

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Attributes(nn.Module):
    def __init__(self, table):
        super().__init__()
        self.table = table.t()

    def forward(self, classes):
        return self.table[classes] * self.table.size(1)


def score(network, val_loader, attributes, device="cpu"):
    network.eval()
    far = 0.0
    for batch in val_loader:
        x, classes = [part.to(device) for part in batch]
        wanted = attributes(classes)
        with torch.no_grad():
            far += nn.functional.mse_loss(network(x), wanted).item() * len(x)
    network.train()
    return far


torch.manual_seed(0)
file = io.BytesIO()
torch.save({"table": torch.rand(6, 3)}, file)
file.seek(0)
attributes = Attributes(torch.load(file)["table"])
x = torch.randn(200, 4)
y = x[:, :3].argmax(1)
train_loader = DataLoader(TensorDataset(x[:160], y[:160]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(x[160:], y[160:]), batch_size=20)
network = nn.Linear(4, 6)
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
for epoch in range(3):
    for batch, classes in train_loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(network(batch), attributes(classes)).backward()
        optimizer.step()
    print(score(network, val_loader, attributes) / 40)
