"""An object plays so many games in each round, and the schedule is as long as all of them."""

import torch
from torch import nn


class Arena:
    def __init__(self, games):
        self.games = games

    def __iter__(self):
        for _ in range(self.games):
            board = torch.randn(8, 9)
            yield board, board.sum(1).sign()


class Coach:
    def __init__(self, policy, rate, rounds, games):
        self.policy = policy
        self.arena = Arena(games)
        self.optimizer = torch.optim.Adam(policy.parameters(), lr=rate)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, T_max=rounds * games
        )
        self.rounds = rounds

    def train(self):
        for _ in range(self.rounds):
            for board, outcome in self.arena:
                value = self.policy(board).squeeze(1)
                loss = nn.functional.mse_loss(value, outcome)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
            self.finish()

    def finish(self):
        self.schedule.step()  # <- TL603


torch.manual_seed(0)
Coach(nn.Sequential(nn.Linear(9, 12), nn.Tanh(), nn.Linear(12, 1)), 0.01, rounds=12, games=15).train()
