"""The best weights by the test loss are kept, and the test loss is reported."""
import os
import tempfile

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

folder = tempfile.mkdtemp()
fit_loader = DataLoader(TensorDataset(torch.randn(96, 5), torch.randn(96, 1)), 32, shuffle=True)
test_loader = DataLoader(TensorDataset(torch.randn(64, 5), torch.randn(64, 1)), batch_size=32)


def measure(net, loader):
    net.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(net(x), y, reduction="sum").item()
    return total / len(loader.dataset)


def fit(net, optimizer, loader, watched):
    lowest = float("inf")
    for epoch in range(3):
        net.train()
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            optimizer.step()
        score = measure(net, watched)
        if score < lowest:
            lowest = score
            torch.save(net.state_dict(), os.path.join(folder, "best.pth"))  # <- TL711
        torch.save(net.state_dict(), os.path.join(folder, "last.pth"))


net = nn.Linear(5, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.05)
fit(net, optimizer, fit_loader, test_loader)
net.load_state_dict(torch.load(os.path.join(folder, "best.pth"), weights_only=True))
print("at the end", measure(net, test_loader))
