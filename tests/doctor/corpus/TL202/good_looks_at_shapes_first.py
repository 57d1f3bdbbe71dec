"""The shapes that a new network returns are looked at before it trains, and never again."""
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(6)
x = torch.randn(96, 3, 8, 8)
y = (x.mean((1, 2, 3)) > 0).long()
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
network = nn.Sequential(
    nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(2),
    nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, 2),
)
test_input = torch.randn(2, 3, 8, 8)
with torch.no_grad():
    output = network(test_input)
print("input", tuple(test_input.shape), "output", tuple(output.shape))

optimizer = torch.optim.SGD(network.parameters(), lr=0.05, momentum=0.9)
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(network(inputs), targets)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
