"""SAM holds the optimizer that really updates; the schedule drives the inner one."""

import torch
from torch import nn


class SAM(torch.optim.Optimizer):
    def __init__(self, params, base_optimizer, rho=0.05, **kwargs):
        super().__init__(params, dict(rho=rho, **kwargs))
        self.base_optimizer = base_optimizer(self.param_groups, **kwargs)
        self.param_groups = self.base_optimizer.param_groups

    @torch.no_grad()
    def first_step(self):
        for group in self.param_groups:
            norm = torch.stack([p.grad.norm() for p in group["params"]]).norm()
            for p in group["params"]:
                e = p.grad * (0.05 / (norm + 1e-12))
                p.add_(e)
                self.state[p]["e"] = e
        self.zero_grad()

    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group["params"]:
                p.sub_(self.state[p]["e"])
        self.base_optimizer.step()
        self.zero_grad()


torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(128, 6)
y = x[:, :2].argmax(dim=1)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True
)
model = nn.Linear(6, 2)
optimizer = SAM(model.parameters(), torch.optim.SGD, lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer.base_optimizer, step_size=2, gamma=0.5)

for epoch in range(4):
    for inputs, labels in loader:
        loss = nn.functional.cross_entropy(model(inputs), labels)
        loss.backward()
        optimizer.first_step()
        nn.functional.cross_entropy(model(inputs), labels).backward()
        optimizer.second_step()
    scheduler.step()
    print(epoch, loss.item(), scheduler.get_last_lr())
