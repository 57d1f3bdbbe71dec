# A library's class writes the rate that the schedule has; nothing steps it.
import torch
from boards import RateLogger
from torch import nn


class Board(RateLogger):
    def __init__(self, schedule):
        super().__init__(schedule)
        self.lines = []


network = nn.Linear(4, 2)
optimizer = torch.optim.Adam(network.parameters(), lr=0.01)
falling = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.95)  # <- TL606
board = Board(falling)
for epoch in range(20):
    for rows in torch.randn(6, 8, 4):
        optimizer.zero_grad()
        nn.functional.mse_loss(network(rows), rows[:, :2].abs()).backward()
        optimizer.step()
    board.write(epoch)
