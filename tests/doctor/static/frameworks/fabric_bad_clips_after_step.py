import torch
from lightning_fabric import Fabric
from torch import nn

fabric = Fabric()
model, optimizer = nn.Linear(10, 3), None
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer = fabric.setup(model, optimizer)
data = torch.utils.data.TensorDataset(torch.randn(320, 10), torch.randint(0, 3, (320,)))
loader = fabric.setup_dataloaders(torch.utils.data.DataLoader(data, batch_size=32, shuffle=True))
for epoch in range(4):
    for x, y in loader:
        optimizer.zero_grad()
        fabric.backward(nn.functional.cross_entropy(model(x), y))
        optimizer.step()
        fabric.clip_gradients(model, optimizer, max_norm=1.0)  # <- TL105
