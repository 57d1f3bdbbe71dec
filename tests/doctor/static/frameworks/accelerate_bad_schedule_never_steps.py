import torch
from accelerate import Accelerator
from torch import nn


def main(data):
    accelerator = Accelerator()
    model = nn.Linear(20, 5)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)  # <- TL606
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    model, opt, loader, sched = accelerator.prepare(model, opt, loader, sched)
    for epoch in range(10):
        for x, y in loader:
            opt.zero_grad()
            accelerator.backward(nn.functional.cross_entropy(model(x), y))
            opt.step()
