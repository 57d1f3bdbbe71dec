"""All of it is one batch: its order means nothing."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

x = torch.randn(200, 3)
y = torch.cat([torch.zeros(100), torch.ones(100)])
dataset = TensorDataset(x, y)
loader = DataLoader(dataset, batch_size=len(dataset))
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(20):
    for inputs, target in loader:
        optimizer.zero_grad()
        nn.functional.binary_cross_entropy_with_logits(model(inputs)[:, 0], target).backward()
        optimizer.step()
