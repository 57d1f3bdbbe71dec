import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.Adam(model.parameters())
average = None
for step in range(200):
    x = torch.randn(16, 3)
    loss = (model(x) - x.sum(1, keepdim=True)).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = loss if average is None else average + 0.1 * (loss - average)  # <- TL204
print(average)
