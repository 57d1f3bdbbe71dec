"""A subclass that shrinks the weights and calls the `step` above."""
import torch
from torch import nn


class Shrinking(torch.optim.SGD):
    @torch.no_grad()
    def step(self, closure=None):
        loss = super().step(closure)
        for group in self.param_groups:
            for p in group["params"]:
                p.mul_(1 - 1e-4)
        return loss


torch.manual_seed(0)
net = nn.Linear(4, 1)
optimizer = Shrinking(net.parameters(), lr=0.01)
for x in torch.randn(6, 8, 4):
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()  # <- TL102
print(loss.item())
