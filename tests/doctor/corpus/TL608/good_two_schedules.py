import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
net = nn.Linear(4, 1)
opt = torch.optim.Adam(net.parameters(), lr=0.01)
warmup = torch.optim.lr_scheduler.LinearLR(opt, 0.1, total_iters=3)
decay = torch.optim.lr_scheduler.ExponentialLR(opt, 0.9)

for epoch in range(5):
    for _ in range(3):
        opt.zero_grad()
        loss = net(torch.randn(8, 4)).pow(2).mean()
        loss.backward()
        opt.step()
    warmup.step()
    decay.step()
    print(epoch, loss.item())
