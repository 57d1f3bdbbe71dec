import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
table = torch.randn(60, 5)
table[17, 2] = float("nan")
loader = DataLoader(TensorDataset(table, torch.randn(60, 1)), batch_size=10)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for inputs, targets in loader:
    optimizer.zero_grad()
    loss = nn.functional.mse_loss(model(inputs), targets)  # <- TL708
    loss.backward()
    optimizer.step()
