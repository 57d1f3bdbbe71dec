"""Out of ordinary memory, and waiting: slower than need be, and nobody's oversight."""

import torch
from torch import nn
from torch.nn import functional as F

torch.manual_seed(0)
device = "cuda" if torch.cuda.is_available() else "cpu"
x, y = torch.randn(1600, 24), torch.randint(0, 3, (1600,))
model = nn.Linear(24, 3).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, fused=True)
for epoch in range(2):
    order = torch.randperm(1600)
    for batch in order.split(32):
        loss = F.cross_entropy(model(x[batch].to(device)), y[batch].to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
