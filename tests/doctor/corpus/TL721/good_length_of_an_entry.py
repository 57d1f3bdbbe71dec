import torch
from torch import nn
from torch.utils.data import DataLoader

torch.manual_seed(0)
records = [{"x": torch.randn(3), "y": torch.randn(1)} for _ in range(12)]
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total, count = 0.0, 0
for batch in DataLoader(records, batch_size=4, shuffle=True):
    loss = nn.functional.mse_loss(model(batch["x"]), batch["y"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    total += loss.item() * len(batch["x"])
    count += len(batch["y"])
print(total / count)
