import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
x = torch.randn(90, 5)
y = x.sum(1)
loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for inputs, targets in loader:
        prediction = model(inputs)
        loss = F.mse_loss(prediction, targets.unsqueeze(1))
        loss = loss + F.l1_loss(prediction.squeeze(1), targets)
        loss = loss + ((prediction[:, 0] - targets) ** 2).mean()
        loss = loss + 1e-3 * F.mse_loss(prediction, torch.zeros(()))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
