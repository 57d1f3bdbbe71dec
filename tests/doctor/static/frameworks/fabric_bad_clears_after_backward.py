import torch
from lightning.fabric import Fabric
from torch import nn

fabric = Fabric(accelerator="auto", devices=1)
fabric.launch()
model = nn.Linear(10, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = fabric.setup(model, optimizer)
data = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randint(0, 3, (320,)))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=32, shuffle=True))
for epoch in range(4):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        fabric.backward(loss)
        optimizer.zero_grad()  # <- TL101
        optimizer.step()
