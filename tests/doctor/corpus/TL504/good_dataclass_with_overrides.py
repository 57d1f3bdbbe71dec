"""`precision` is 16 unless the command line says otherwise; then there is no float16."""
import sys
from dataclasses import dataclass, field

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Options:
    half: bool = True
    sizes: list = field(default_factory=lambda: [4, 1])


def parse(words):
    return {"half": "--half" in words}


options = Options(**parse(sys.argv[1:]))
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), 4, shuffle=True)
model = nn.Linear(*options.sizes)
opt = torch.optim.SGD(model.parameters(), 0.1)
scaler = torch.amp.GradScaler("cuda") if options.half else None
for x, y in loader:
    opt.zero_grad()
    with torch.autocast("cuda", torch.float16, enabled=options.half):
        loss = nn.functional.mse_loss(model(x), y)
    if scaler is None:
        loss.backward()
        opt.step()
        continue
    scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
