import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
loader = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(5)]
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def running():
    total = 0.0
    for count, (x, y) in enumerate(loader, 1):
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        total += loss.item()
        yield total / count


for mean in running():
    print(mean)
