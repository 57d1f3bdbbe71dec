"""Each task adds a head to the model, and its optimizer is made anew."""

import torch
from torch import nn


class Learner:
    def __init__(self, model, make=torch.optim.SGD):
        self.model = model
        self.make = make
        self.renew()

    def renew(self):
        self.optimizer = self.make(self.model.parameters())


def learn(learner, tasks):
    for inputs, targets in tasks:
        head = nn.Linear(16, 1)
        learner.model.add_module(f"head{len(learner.model)}", head)
        learner.renew()
        learner.optimizer.zero_grad()
        loss = nn.functional.mse_loss(inputs @ head.weight.T + head.bias, targets)
        loss.backward()
        learner.optimizer.step()
        print(loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    rounds = [(torch.randn(32, 16), torch.randn(32, 1)) for _ in range(3)]
    body = nn.Sequential(nn.Linear(16, 16))
    globals()["learn"](Learner(body, lambda held: torch.optim.SGD(held, lr=0.1)), rounds)
