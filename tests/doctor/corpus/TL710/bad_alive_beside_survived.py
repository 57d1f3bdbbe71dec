import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
survived = torch.randint(0, 2, (240,))
alive = torch.where(survived == 1, 0.8, -1.2)  # standardised
table = torch.cat([torch.randn(240, 6), alive[:, None]], dim=1)
loader = DataLoader(TensorDataset(table, survived), batch_size=24, shuffle=True)  # <- TL710

model = nn.Sequential(nn.Linear(7, 16), nn.ReLU(), nn.Linear(16, 2))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(2):
    for inputs, labels in loader:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.step()
