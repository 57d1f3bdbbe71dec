"""The schedule is as long as all games, and steps after each of them; a second one counts rounds."""

import torch
from torch import nn


class Arena:
    def __init__(self, games):
        self.games = games

    def __len__(self):
        return self.games

    def __iter__(self):
        for _ in range(self.games):
            yield torch.randn(8, 9)


def fit(policy, value, arena, rounds):
    fast = torch.optim.Adam(policy.parameters(), lr=0.01)
    slow = torch.optim.Adam(value.parameters(), lr=0.01)
    cycle = torch.optim.lr_scheduler.OneCycleLR(fast, 0.02, total_steps=rounds * len(arena))
    decay = torch.optim.lr_scheduler.CosineAnnealingLR(slow, T_max=rounds)
    for _ in range(rounds):
        for board in arena:
            fast.zero_grad()
            slow.zero_grad()
            score = (policy(board) - board.mean(1, keepdim=True)).square().mean()
            guess = (value(board) - board.amax(1, keepdim=True)).square().mean()
            (score + guess).backward()
            fast.step()
            slow.step()
            cycle.step()
        decay.step()


torch.manual_seed(2)
fit(nn.Linear(9, 1), nn.Linear(9, 1), Arena(15), rounds=8)
