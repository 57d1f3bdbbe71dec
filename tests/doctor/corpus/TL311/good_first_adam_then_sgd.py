import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(24, 4), torch.randn(24, 1)), 8, shuffle=True)
model = nn.Linear(4, 1)
adam = torch.optim.Adam(model.parameters(), lr=1e-3)
sgd = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)
SWITCH = 1

for epoch in range(3):
    optimizer = adam if epoch < SWITCH else sgd
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
