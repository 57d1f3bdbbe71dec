import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(*[nn.Linear(20, 20) for _ in range(16)])
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
for step in range(110):
    x = torch.randn(16, 20)
    loss = nn.functional.mse_loss(model(x), x.flip(1))
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0).item()
    optimizer.step()
print(norm)
