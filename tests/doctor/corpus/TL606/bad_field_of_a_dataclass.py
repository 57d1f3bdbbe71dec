from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import StepLR


@dataclass
class TrainState:
    model: nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: object
    epoch: int = 0


def create_state(lr):
    model = nn.Linear(3, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    return TrainState(model, optimizer, StepLR(optimizer, step_size=1, gamma=0.5))  # <- TL606


torch.manual_seed(0)
state = create_state(0.1)
data = [(torch.randn(4, 3), torch.randn(4, 1)) for _ in range(4)]
for state.epoch in range(3):
    for x, y in data:
        state.optimizer.zero_grad()
        nn.functional.mse_loss(state.model(x), y).backward()
        state.optimizer.step()
