"""An optimizer of their own takes the gradients out, clears them for a second loss, and updates."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


def gathered(parameters):
    return torch.cat([p.grad.view(-1) for p in parameters])


class TwoLosses(torch.optim.Optimizer):
    def __init__(self, net, lr):
        self.net = net
        super().__init__(net.parameters(), {"lr": lr})

    def step(self, x, y, memory):
        parameters = self.param_groups[0]["params"]
        self.zero_grad()
        loss = F.mse_loss(self.net(x), y)
        loss.backward()
        whole = gathered(parameters).detach()
        for old, wanted in memory:
            self.zero_grad()
            found = torch.autograd.grad(F.mse_loss(self.net(old), wanted), parameters)
            whole = whole + torch.cat([each.reshape(-1) for each in found])
        with torch.no_grad():
            held = nn.utils.parameters_to_vector(parameters)
            nn.utils.vector_to_parameters(held - self.param_groups[0]["lr"] * whole, parameters)
        return loss.item()


X = torch.randn(64, 4)
Y = X.sum(1, keepdim=True)
net = nn.Linear(4, 1)
optimizer = TwoLosses(net, 0.05)
memory = [(X[:8], Y[:8])]
for x, y in DataLoader(TensorDataset(X, Y), batch_size=16, shuffle=True):
    print(optimizer.step(x, y, memory))
