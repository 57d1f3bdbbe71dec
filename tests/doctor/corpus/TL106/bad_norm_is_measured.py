"""Two networks take turns; a helper clips by hand and returns the norm, the second never steps."""

import torch
from torch import nn
from torch.utils.data import DataLoader


def clip_by_value(parameters, limit):
    parameters = [each for each in parameters if each.grad is not None]
    total = 0.0
    for each in parameters:
        total += each.grad.data.norm(2).item() ** 2
        if limit is not None:
            each.grad.data.clamp_(-limit, limit)
    return total**0.5


maker, judge = nn.Linear(2, 4), nn.Linear(4, 1)
maker_opt = torch.optim.Adam(maker.parameters(), lr=1e-3)
judge_opt = torch.optim.Adam(judge.parameters(), lr=1e-3)
for real in DataLoader(torch.randn(64, 4), batch_size=8, shuffle=True):
    fake = maker(torch.randn(len(real), 2))
    judge_opt.zero_grad()
    (judge(fake.detach()).mean() - judge(real).mean()).backward()
    clip_by_value(judge.parameters(), None)
    judge_opt.step()

    maker_opt.zero_grad()
    (-judge(fake).mean()).backward()  # <- TL106
    print(clip_by_value(maker.parameters(), None))
