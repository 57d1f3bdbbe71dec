"""Two sub-epochs, each with updates and a step of its own; and a fast-forward before the run."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
easy = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)]
hard = [(3 * torch.randn(8, 4), torch.randn(8, 1)) for _ in range(3)]
net = nn.Linear(4, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.01)
sched = torch.optim.lr_scheduler.ExponentialLR(opt, 0.95)
opt.step()
for _ in range(2):
    sched.step()


def learn(part):
    for x, y in part:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
    return loss.item()


for round_ in range(4):
    first = learn(easy)
    sched.step()
    second = learn(hard)
    sched.step()
    print(round_, first, second)
