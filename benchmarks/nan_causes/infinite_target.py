"""The target of one sample is the logarithm of 0."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(300, 6)
price = torch.rand(300) * 100 + 1
price[211] = 0
loader = DataLoader(TensorDataset(x, price.log()), batch_size=3)
model = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 1))
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for features, target in loader:
    optimizer.zero_grad()
    prediction = model(features).squeeze(1)
    loss = criterion(prediction, target)
    loss.backward()
    optimizer.step()
