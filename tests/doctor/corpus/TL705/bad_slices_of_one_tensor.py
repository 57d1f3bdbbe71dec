import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def loaders(x, y, batch_size):
    train = TensorDataset(x[:90], y[:90])
    test = TensorDataset(x[80:], y[80:])
    return (
        DataLoader(train, batch_size=batch_size, shuffle=True),
        DataLoader(test, batch_size=batch_size),  # <- TL705
    )


def run():
    torch.manual_seed(0)
    x = torch.randn(120, 5)
    train_loader, test_loader = loaders(x, x.mean(1, keepdim=True), 10)
    model = nn.Linear(5, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        for a, b in train_loader:
            optimizer.zero_grad()
            F.mse_loss(model(a), b).backward()
            optimizer.step()
        with torch.no_grad():
            print(epoch, sum(F.mse_loss(model(a), b).item() for a, b in test_loader) / 4)


run()
