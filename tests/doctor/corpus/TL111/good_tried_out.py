import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
loader = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(5)]
net = nn.Linear(3, 1)
opt = torch.optim.SGD(net.parameters(), lr=0.1)


def smoke_test():
    losses = []
    for x, y in loader:
        opt.zero_grad()
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
        break
    return losses


print(smoke_test())
