import torch
from torch import nn


class Runner:
    def __init__(self):
        self.net = nn.Linear(8, 3)
        self.optim = torch.optim.SGD(self.net.parameters(), lr=0.1)
        self.amp = torch.amp.GradScaler("cpu", init_scale=512.0)

    def limit(self, most):
        total = 0.0
        for p in self.net.parameters():
            total += p.grad.norm().item() ** 2
        total = total**0.5
        factor = min(1.0, most / (total + 1e-6))
        for p in self.net.parameters():
            p.grad *= factor

    def update(self, x, y):
        self.optim.zero_grad()
        with torch.autocast("cpu", dtype=torch.float16):
            loss = nn.functional.cross_entropy(self.net(x), y)
        self.amp.scale(loss).backward()
        self.limit(1.0)  # <- TL501
        self.amp.step(self.optim)
        self.amp.update()
        return loss.item()


torch.manual_seed(0)
runner = Runner()
for x in torch.randn(6, 8, 8):
    print(runner.update(x, x[:, :3].argmax(1)))
