import torch
from lightning.fabric import Fabric
from torch import nn

fabric = Fabric(devices=2)
fabric.launch()
model = nn.Linear(10, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = fabric.setup(model, optimizer)
data = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randint(0, 3, (320,)))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=8, shuffle=True))
for epoch in range(4):
    for i, (x, y) in enumerate(loader):
        busy = (i + 1) % 8 != 0
        with fabric.no_backward_sync(model, enabled=busy):
            fabric.backward(nn.functional.cross_entropy(model(x), y) / 8)
        if not busy:
            optimizer.step()
            optimizer.zero_grad()
