import torch
from torch import nn

torch.manual_seed(0)
cuda = torch.cuda.is_available()
device = torch.device("cuda" if cuda else "cpu")
host = torch.randn(4, 64, 100)
if cuda:
    host = host.pin_memory()
model = nn.Linear(100, 1).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, fused=True)
for step in range(100):
    batch = host[step % 4].to(device, non_blocking=True)
    loss = model(batch).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item())
