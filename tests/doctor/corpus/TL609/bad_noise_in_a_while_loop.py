import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
x, y = torch.randn(64, 4), torch.randn(64, 1)
sigma, decay, it = 0.3, 0.999, 0
while it < 10:
    rows = torch.randint(0, 64, (16,))
    noisy = x[rows] + sigma * torch.randn(16, 4)
    loss = (net(noisy) - y[rows]).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    sigma *= decay**it  # <- TL609
    it += 1
