import enum

import torch
from torch import nn


class Phase(enum.Enum):
    TRAIN = 0,
    VAL = 1,


def closure(net, opt, data):
    def main_loop(phase):
        net.train() if phase == Phase.TRAIN else net.eval()
        x = data[phase]
        loss = nn.functional.mse_loss(net(x), x.sum(1, keepdim=True))
        if phase == Phase.TRAIN:
            opt.zero_grad()
            opt.step()  # <- TL108
        return loss.item()

    return main_loop


torch.manual_seed(0)
net = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
opt = torch.optim.Adam(net.parameters())
main_loop = closure(net, opt, {Phase.TRAIN: torch.randn(32, 4), Phase.VAL: torch.randn(8, 4)})
for epoch in range(5):
    main_loop(phase=Phase.TRAIN)
    with torch.no_grad():
        print(main_loop(phase=Phase.VAL))
