"""An object makes the whole update every few batches, and nobody clears."""
import torch
from torch import nn


class NativeScaler:
    def __init__(self):
        self._scaler = torch.amp.GradScaler("cpu", init_scale=64.0)

    def __call__(self, loss, optimizer, clip_grad=None, parameters=None, update_grad=True):
        self._scaler.scale(loss).backward()
        if update_grad:
            if clip_grad is not None:
                self._scaler.unscale_(optimizer)
                nn.utils.clip_grad_norm_(parameters, clip_grad)
            self._scaler.step(optimizer)  # <- TL102
            self._scaler.update()


def train_one_epoch(model, loader, optimizer, loss_scaler, accum_iter):
    optimizer.zero_grad()
    for step, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        loss /= accum_iter
        loss_scaler(
            loss, optimizer, parameters=model.parameters(), update_grad=(step + 1) % accum_iter == 0
        )
    print(loss.item())


torch.manual_seed(0)
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loss_scaler = NativeScaler()
data = [(x, (x[:, 0] > 0).long()) for x in torch.randn(8, 8, 4)]
for epoch in range(2):
    train_one_epoch(model, data, optimizer, loss_scaler, 2)
