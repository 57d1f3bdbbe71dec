# An optimizer class of their own averages over ranks before it updates, and clears nothing.
import torch
import torch.distributed as dist
from torch import nn


class Everywhere(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    def _meet(self, weight):
        if dist.is_available() and dist.is_initialized():
            dist.all_reduce(weight.grad)
        return weight.grad

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                weight.add_(self._meet(weight), alpha=-group["lr"])


torch.manual_seed(0)
net = nn.Linear(4, 1)
descent = Everywhere(net.parameters(), 0.01)
for x in torch.randn(8, 8, 4):
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    descent.step()  # <- TL102
print(loss.item())
