import torch
from torch import nn


class Scaler:
    def __init__(self):
        self.scaler = torch.amp.GradScaler("cpu", init_scale=64.0)

    def __call__(self, loss, optimizer, update):
        self.scaler.scale(loss).backward()
        if update:
            self.scaler.step(optimizer)
            self.scaler.update()


torch.manual_seed(0)
model, scaler = nn.Linear(4, 2), Scaler()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, x in enumerate(torch.randn(8, 8, 4)):
    loss = nn.functional.cross_entropy(model(x), (x[:, 0] > 0).long()) / 2
    scaler(loss, optimizer, update=(i + 1) % 2 == 0)
    if (i + 1) % 2 == 0:
        optimizer.zero_grad()
print(loss.item())
