import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, WeightedRandomSampler

labels = torch.cat([torch.zeros(90), torch.ones(10)])
features = torch.randn(100, 4) + labels[:, None]
weights = torch.where(labels == 1, 9.0, 1.0)
sampler = WeightedRandomSampler(weights, num_samples=100, replacement=True)
loader = DataLoader(TensorDataset(features, labels), batch_size=10, sampler=sampler)

model = nn.Linear(4, 1)
loss_fn = nn.BCEWithLogitsLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for epoch in range(2):
    for x, target in loader:
        optimizer.zero_grad()
        loss = loss_fn(model(x).squeeze(1), target)
        loss.backward()
        optimizer.step()
