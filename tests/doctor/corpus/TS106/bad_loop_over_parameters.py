import torch
from torch import nn

torch.manual_seed(0)
layers = [part for _ in range(16) for part in (nn.Linear(20, 20), nn.Tanh())]
model = nn.Sequential(*layers, nn.Linear(20, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
norms = []
for step in range(120):
    x = torch.randn(16, 20)
    loss = nn.functional.mse_loss(model(x), x[:, :1])
    optimizer.zero_grad()
    loss.backward()
    total = 0.0
    for p in model.parameters():
        if p.grad is not None:
            total += p.grad.data.norm(2).item() ** 2  # <- TS106
    norms.append(total**0.5)
    optimizer.step()
print(max(norms))
