# A library's engine is given the schedule, and steps it.
import torch
from engines import Engine
from torch import nn


class Run(Engine):
    def __init__(self, network, schedule):
        super().__init__(network, schedule)


network = nn.Linear(4, 2)
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
run = Run(network, torch.optim.lr_scheduler.StepLR(optimizer, 30))
for rows in torch.randn(90, 8, 4):
    optimizer.zero_grad()
    nn.functional.cross_entropy(network(rows), (rows[:, 0] > 0).long()).backward()
    optimizer.step()
    run.after_update()
