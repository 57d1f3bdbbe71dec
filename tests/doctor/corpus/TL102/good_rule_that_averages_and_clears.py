"""An optimizer class of their own averages over ranks, updates and lets the gradients go."""
import torch
import torch.distributed as dist
from torch import nn


class Everywhere(torch.optim.Optimizer):
    def __init__(self, params, lr):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self):
        for group in self.param_groups:
            for weight in group["params"]:
                if dist.is_available() and dist.is_initialized():
                    dist.all_reduce(weight.grad)
                weight.add_(weight.grad, alpha=-group["lr"])
                weight.grad = None


torch.manual_seed(0)
net = nn.Linear(4, 1)
descent = Everywhere(net.parameters(), 0.01)
for x in torch.randn(8, 8, 4):
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    descent.step()
print(loss.item())
