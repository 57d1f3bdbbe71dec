"""The default of the dataclass is None, the file may set it: one option decides both."""
import json
from dataclasses import dataclass

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    use_amp: bool = None
    lr: float = 0.1


with open("config.json", "w") as file:
    json.dump({"lr": 0.05, "use_amp": False}, file)
config = Config(**json.load(open("config.json")))
loader = DataLoader(TensorDataset(torch.randn(16, 4), torch.randn(16, 1)), 4, shuffle=True)
model = nn.Linear(4, 1)
opt = torch.optim.SGD(model.parameters(), config.lr)
scaler = torch.amp.GradScaler("cuda", enabled=config.use_amp)
for x, y in loader:
    with torch.autocast("cuda", dtype=torch.float16, enabled=config.use_amp):
        loss = nn.functional.mse_loss(model(x), y)
    opt.zero_grad()
    if config.use_amp:
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
    else:
        loss.backward()
        opt.step()
