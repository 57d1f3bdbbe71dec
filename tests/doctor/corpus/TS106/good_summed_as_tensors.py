import torch
import torch.nn as nn

torch.manual_seed(0)
net = nn.Sequential(*[nn.Linear(12, 12) for _ in range(12)])
opt = torch.optim.SGD(net.parameters(), lr=0.01, fused=True)
for step in range(110):
    x = torch.randn(16, 12)
    loss = nn.functional.mse_loss(net(x), x.flip(1))
    opt.zero_grad()
    loss.backward()
    squares = torch.zeros(())
    for p in net.parameters():
        squares += p.grad.norm() ** 2
    norm = squares.sqrt().item()
    opt.step()
print(norm)
