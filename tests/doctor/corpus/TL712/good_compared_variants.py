"""The same seed for each variant, so that they start alike."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def run(lr, loader, epochs=2):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
    return loss.item()


loader = DataLoader(TensorDataset(torch.randn(40, 4), torch.randn(40, 1)), 10, shuffle=True)
results = {}
for lr in (0.3, 0.1, 0.03):
    results[lr] = run(lr, loader)
for seed in range(2):
    for momentum in (0.0, 0.9):
        torch.manual_seed(seed)
        net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
        opt = torch.optim.SGD(net.parameters(), lr=0.1, momentum=momentum)
        for x, y in loader:
            opt.zero_grad()
            nn.functional.mse_loss(net(x), y).backward()
            opt.step()
print(min(results, key=results.get))
