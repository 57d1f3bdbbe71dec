"""Windows cut out of a series, in a function of their own."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def windows(series, length):
    xs, ys = [], []
    for i in range(len(series) - length):
        xs.append(series[i : i + length])
        ys.append(series[i + length])
    return torch.stack(xs), torch.stack(ys)


series = torch.cumsum(torch.randn(44), 0)
loader = DataLoader(TensorDataset(*windows(series, 4)), batch_size=8)
model, running = nn.Linear(4, 1), 0.0
with torch.no_grad():
    for x, y in loader:
        running += nn.functional.mse_loss(model(x).squeeze(-1), y).item()
print(running / len(loader))
