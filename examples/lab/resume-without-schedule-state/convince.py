"""The learning rate before a restart and in its first ticks, when only the optimizer is loaded."""

import torch
from torch.optim.lr_scheduler import CosineAnnealingLR, ExponentialLR, LambdaLR

for make in (
    lambda optimizer: LambdaLR(optimizer, lambda tick: 1 - tick / 20),
    lambda optimizer: CosineAnnealingLR(optimizer, 20),
    lambda optimizer: ExponentialLR(optimizer, 0.9),
):
    rates, state = [], None
    for _ in range(2):  # the second time round is the restart
        optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        schedule = make(optimizer)
        if state:
            optimizer.load_state_dict(state)
        for _ in range(10):
            rates.append(round(optimizer.param_groups[0]["lr"], 2))
            optimizer.step()
            schedule.step()
        state = optimizer.state_dict()
    print(f"{type(schedule).__name__:17} before {rates[7:10]}  after {rates[10:14]}")
