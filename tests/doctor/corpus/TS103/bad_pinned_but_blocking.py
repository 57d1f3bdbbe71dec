import torch
import torch.nn as nn

torch.manual_seed(0)
cuda = torch.cuda.is_available()
device = "cuda" if cuda else "cpu"
batches = [torch.randn(8000 if cuda else 8, 1000) for _ in range(4)]
if cuda:
    batches = [batch.pin_memory() for batch in batches]
net = nn.Linear(1000, 1).to(device)
opt = torch.optim.SGD(net.parameters(), lr=1e-4, fused=True)


def step(batch):
    batch = batch.to(device)  # <- TS103
    loss = net(batch).square().mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss


for i in range(100):
    loss = step(batches[i % 4])
print(loss.item())
