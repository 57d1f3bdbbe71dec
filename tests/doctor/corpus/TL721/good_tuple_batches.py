import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(20, 3)), batch_size=5, shuffle=True)
tensors = DataLoader(torch.randn(20, 3), batch_size=5, shuffle=True)
model = nn.Linear(3, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
seen = 0
for (x,) in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(x), x).backward()
    optimizer.step()
    seen += len(x)
for batch in tensors:
    loss = (model(batch) - batch).pow(2).sum() / len(batch)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    seen += len(batch)
