import torch
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 1))
opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
every = 4
for i, x in enumerate(torch.randn(24, 8, 6)):
    loss = (net(x) - x.mean(1, keepdim=True)).pow(2).mean() / every
    loss.backward()
    if (i + 1) % every == 0:
        nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        opt.step()  # <- TL102
        print(i, loss.item())
