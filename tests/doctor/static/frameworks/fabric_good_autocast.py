import torch
from lightning.fabric import Fabric
from torch import nn

fabric = Fabric(precision="16-mixed")
model, criterion = nn.Linear(10, 3), nn.CrossEntropyLoss(reduction="none")
optimizer = torch.optim.AdamW(model.parameters())
model, optimizer = fabric.setup(model, optimizer)
data = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randint(0, 3, (320,)))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=8, shuffle=True))
for x, y in loader:
    with fabric.autocast():
        losses = criterion(model(x), y)
    weights = torch.rand_like(losses)
    fabric.backward((losses * weights).sum() / weights.sum())
    optimizer.step()
    optimizer.zero_grad()
