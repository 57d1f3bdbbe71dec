import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(8)]
window = 4

for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        if i % window == 0:
            optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y) / window
        loss.backward()
        if (i + 1) % window == 0:
            optimizer.step()
    print(epoch, loss.item())
