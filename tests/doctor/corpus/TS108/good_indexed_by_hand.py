import torch
import torch.nn as nn

torch.manual_seed(0)
x = torch.randn(1920, 12)
y = x.norm(dim=1, keepdim=True)
net = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Linear(24, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05, fused=True)
for epoch in range(2):
    for batch in torch.randperm(len(x)).split(32):
        loss = nn.functional.mse_loss(net(x[batch]), y[batch])
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(epoch, loss.item())
