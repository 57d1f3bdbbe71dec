"""An optimizer of one's own that updates its first parameter group and forgets the others."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class SignSGD(torch.optim.Optimizer):
    def __init__(self, params, lr=1e-3):
        super().__init__(params, {"lr": lr})

    @torch.no_grad()
    def step(self, closure=None):
        group = self.param_groups[0]
        for p in group["params"]:
            if p.grad is not None:
                p.add_(p.grad.sign(), alpha=-group["lr"])


torch.manual_seed(0)
x = torch.randn(160, 8)
loader = DataLoader(TensorDataset(x, x.norm(dim=1, keepdim=True)), batch_size=16, shuffle=True)
model = nn.Sequential(nn.Linear(8, 32), nn.Tanh(), nn.Linear(32, 1))
groups = [{"params": model[0].parameters()}, {"params": model[2].parameters(), "lr": 3e-3}]
optimizer = SignSGD(groups, lr=1e-3)  # <- TL306
for epoch in range(3):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
