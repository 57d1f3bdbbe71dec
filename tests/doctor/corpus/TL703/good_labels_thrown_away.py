import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
images = torch.rand(60, 16)
labels = torch.cat([torch.zeros(30), torch.ones(30)]).long()
# An auto-encoder learns from the images alone; a fixed order keeps its pictures comparable.
loader = DataLoader(TensorDataset(images, labels), batch_size=10)

model = nn.Sequential(nn.Linear(16, 4), nn.ReLU(), nn.Linear(4, 16), nn.Sigmoid())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(3):
    total = 0.0
    for batch_id, (x, _) in enumerate(loader):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total / len(loader))
