import torch
from lightning.fabric import Fabric
from torch import nn

EPOCHS = 30
fabric = Fabric()
model = nn.Linear(10, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
model, optimizer = fabric.setup(model, optimizer)
data = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randint(0, 3, (320,)))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=32, shuffle=True))
for epoch in range(EPOCHS):
    for x, y in loader:
        optimizer.zero_grad()
        fabric.backward(nn.functional.cross_entropy(model(x), y))
        optimizer.step()
        schedule.step()  # <- TL602
