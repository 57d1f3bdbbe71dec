import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.stem, self.body, self.head = nn.Linear(6, 8), nn.Linear(8, 8), nn.Linear(8, 1)
        self.slow = torch.optim.SGD(self.stem.parameters(), lr=1e-3)
        self.middle = torch.optim.SGD(self.body.parameters(), lr=1e-2)  # <- TL106
        self.fast = torch.optim.SGD(self.head.parameters(), lr=1e-1)

    def update(self, x, y):
        for each in (self.slow, self.middle, self.fast):
            each.zero_grad()
        error = (self.head(torch.relu(self.body(torch.relu(self.stem(x))))) - y).pow(2).mean()
        error.backward()
        self.slow.step()
        self.fast.step()
        return error.item()


torch.manual_seed(0)
trainer = Trainer()
for _ in range(15):
    x = torch.randn(32, 6)
    print(trainer.update(x, x[:, :1] * 2))
