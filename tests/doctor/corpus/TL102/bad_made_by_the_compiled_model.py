"""The model's own method makes what updates it, and is called through `torch.compile`."""
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner, self.head = nn.Linear(4, 8), nn.Linear(8, 1)

    def forward(self, x):
        return self.head(self.inner(x).relu())

    def update_rule(self, lr):
        groups = [
            {"params": self.inner.parameters(), "lr": lr},
            {"params": self.head.parameters(), "lr": lr / 2},
        ]
        return torch.optim.AdamW(groups)


net = torch.compile(Net(), backend="eager")
rule = net.update_rule(1e-3)
for x in torch.randn(6, 8, 4):
    loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
    loss.backward()
    rule.step()  # <- TL102
print(loss.item())
