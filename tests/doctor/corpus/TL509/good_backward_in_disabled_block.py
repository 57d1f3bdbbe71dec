import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(6, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
use_amp = False
for x in torch.randn(10, 8, 6):
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=use_amp):
        loss = nn.functional.mse_loss(model(x), x.mean(1, keepdim=True))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
print(loss.item())
