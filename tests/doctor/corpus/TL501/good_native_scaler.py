"""The scaler class that many vision repositories share."""
import torch
from torch import nn


class NativeScalerWithGradNormCount:
    state_dict_key = "amp_scaler"

    def __init__(self):
        self._scaler = torch.amp.GradScaler("cpu", init_scale=64.0)

    def __call__(self, loss, optimizer, clip_grad=None, parameters=None, create_graph=False, update_grad=True):
        self._scaler.scale(loss).backward(create_graph=create_graph)
        if update_grad:
            if clip_grad is not None:
                assert parameters is not None
                self._scaler.unscale_(optimizer)  # unscale the gradients in-place
                norm = torch.nn.utils.clip_grad_norm_(parameters, clip_grad)
            else:
                self._scaler.unscale_(optimizer)
                norm = torch.stack([p.grad.norm() for p in parameters]).norm()
            self._scaler.step(optimizer)
            self._scaler.update()
        else:
            norm = None
        return norm

    def state_dict(self):
        return self._scaler.state_dict()


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 3))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
loss_scaler = NativeScalerWithGradNormCount()
accum_iter = 2
loader = [(torch.randn(8, 6), torch.randint(0, 3, (8,))) for _ in range(8)]
optimizer.zero_grad()
for data_iter_step, (samples, targets) in enumerate(loader):
    with torch.autocast("cpu", dtype=torch.float16):
        loss = criterion(model(samples), targets)
    loss = loss / accum_iter
    update = (data_iter_step + 1) % accum_iter == 0
    loss_scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters(), update_grad=update)
    if update:
        optimizer.zero_grad()
