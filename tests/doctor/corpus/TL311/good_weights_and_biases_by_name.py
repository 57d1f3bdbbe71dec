import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(4, 6), nn.Linear(6, 1)

    def forward(self, x):
        return self.out(torch.relu(self.hidden(x)))


torch.manual_seed(0)
net = Net()
weights, biases = [], []
for name, parameter in net.named_parameters():
    (biases if name.endswith("bias") else weights).append(parameter)
opt_w = torch.optim.Adam(weights, lr=1e-3)
opt_b = torch.optim.SGD(biases, lr=1e-2)
for _ in range(4):
    opt_w.zero_grad(), opt_b.zero_grad()
    nn.functional.mse_loss(net(torch.randn(8, 4)), torch.randn(8, 1)).backward()
    opt_w.step()
    opt_b.step()
