"""Whether autograd records hangs on the mode, which the validation sets."""
import torch
from torch import nn


class Run:
    def __init__(self, net, x, y):
        self.net, self.x, self.y = net, x, y
        self.optimizer = torch.optim.SGD(net.parameters(), lr=0.05)

    def pass_over(self, first, last, learn):
        self.net.train(learn)
        total = 0.0
        with torch.set_grad_enabled(self.net.training):
            for i in range(first, last, 25):
                loss = nn.functional.mse_loss(self.net(self.x[i : i + 25]), self.y[i : i + 25])
                if learn:
                    self.optimizer.zero_grad()
                    loss.backward()
                    self.optimizer.step()
                total += loss.item() * 25
        return total / (last - first)


torch.manual_seed(0)
x = torch.randn(250, 4)
run = Run(nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1)), x, x[:, :1] * x[:, 1:2])
for epoch in range(3):
    run.pass_over(0, 200, learn=True)
    print(epoch, run.pass_over(200, 250, learn=False))
