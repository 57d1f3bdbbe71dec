import os
import tempfile

import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
path = os.path.join(tempfile.mkdtemp(), "best_model.pth")

train_loader = DataLoader(TensorDataset(torch.randn(128, 5), torch.randn(128, 1)), 32, shuffle=True)
test_loader = DataLoader(TensorDataset(torch.randn(64, 5), torch.randn(64, 1)), batch_size=32)

net = nn.Linear(5, 1).to(device)
optimizer = optim.SGD(net.parameters(), lr=0.05)


def evaluate(net, loader):
    net.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            total += F.mse_loss(net(x), y, reduction="sum").item()
    return total / len(loader.dataset)


best_loss = float("inf")
for epoch in range(3):
    net.train()
    for x, y in train_loader:
        x, y = x.to(device), y.to(device)
        optimizer.zero_grad()
        loss = F.mse_loss(net(x), y)
        loss.backward()
        optimizer.step()
    test_loss = evaluate(net, test_loader)
    if test_loss < best_loss:
        best_loss = test_loss
        torch.save(net.state_dict(), path)  # <- TL711

net.load_state_dict(torch.load(path, weights_only=True))
print("final test loss", evaluate(net, test_loader))
os.remove(path)
os.rmdir(os.path.dirname(path))
