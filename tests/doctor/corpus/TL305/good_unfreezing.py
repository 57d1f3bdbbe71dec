import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

# When the backbone is set free, a new optimizer takes all parameters.
UNFREEZE_AT = 2

torch.manual_seed(0)
x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
backbone = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
head = nn.Linear(16, 2)
model = nn.Sequential(backbone, head)
for p in backbone.parameters():
    p.requires_grad = False
optimizer = torch.optim.Adam(head.parameters(), lr=1e-2)

for epoch in range(4):
    if epoch == UNFREEZE_AT:
        for p in backbone.parameters():
            p.requires_grad = True
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
