import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
x, y = torch.randn(64, 4), torch.randn(64, 1)
net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
opt = torch.optim.SGD(net.parameters(), lr=0.05)


def one_pass(size=16):
    loss_sum = 0
    order = torch.randperm(len(x))
    for start in range(0, len(x), size):
        index = order[start : start + size]
        loss = (net(x[index]) - y[index]).pow(2).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        loss_sum += loss.item() * len(index)
        return loss_sum / len(x)  # <- TL111


for _ in range(4):
    print(one_pass())
