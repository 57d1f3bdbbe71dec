"""A method makes a snapshot whose tensors are its own."""

import torch
from torch import nn

torch.manual_seed(0)


class Fitter:
    def __init__(self, net):
        self.net = net
        self.opt = torch.optim.Adam(net.parameters(), lr=0.02)
        self.best, self.kept = float("inf"), None

    def live(self):
        return self.net.state_dict()

    def snapshot(self):
        return {key: value.detach().clone() for key, value in self.live().items()}

    def run(self, x, y, check_x, check_y, epochs):
        for _ in range(epochs):
            self.net.train()
            for rows in torch.randperm(len(x)).split(16):
                loss = nn.functional.mse_loss(self.net(x[rows]), y[rows])
                self.opt.zero_grad()
                loss.backward()
                self.opt.step()
            self.net.eval()
            with torch.no_grad():
                error = nn.functional.mse_loss(self.net(check_x), check_y).item()
            if error < self.best:
                self.best, self.kept = error, self.snapshot()
        self.net.load_state_dict(self.kept)
        return self.best


x = torch.randn(72, 4)
y = x.sum(1, keepdim=True) + torch.randn(72, 1)
net = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 1))
print(Fitter(net).run(x[:48], y[:48], x[48:], y[48:], 20))
