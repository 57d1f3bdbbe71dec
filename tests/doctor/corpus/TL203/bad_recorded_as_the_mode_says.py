"""Whether autograd records hangs on the mode, and nobody puts the network into eval mode."""
import torch
from torch import nn


class Run:
    def __init__(self, net, x, y):
        self.net, self.x, self.y = net, x, y
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    def train(self, cut):
        for i in range(0, cut, 25):
            loss = nn.functional.mse_loss(self.net(self.x[i : i + 25]), self.y[i : i + 25])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    def validate(self, cut):
        total = 0.0
        with torch.set_grad_enabled(self.net.training):
            for i in range(cut, len(self.x), 25):
                found = self.net(self.x[i : i + 25])  # <- TL203
                total += (found - self.y[i : i + 25]).pow(2).sum().item()
        return total / (len(self.x) - cut)


torch.manual_seed(0)
x = torch.randn(250, 4)
run = Run(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)), x, x[:, :1] * x[:, 1:2])
for epoch in range(3):
    run.train(200)
    print(epoch, run.validate(200))
