import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
window = 3
for i, x in enumerate(torch.randn(12, 8, 4)):
    if i % window == 0:
        optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()) / window
    loss.backward()
    if (i + 1) % window == 0:
        optimizer.step()
print(loss.item())
