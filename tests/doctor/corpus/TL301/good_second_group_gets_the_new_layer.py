"""The output layer grows, and the second group of the optimizer gets the new one's parameters."""

import torch
from torch import nn

torch.manual_seed(9)


class Learner:
    def __init__(self):
        self.trunk, self.net = nn.Linear(6, 12), None
        self.net = nn.ModuleDict({"trunk": self.trunk, "out": nn.Linear(12, 3)})
        self.optimizer = torch.optim.AdamW(
            [{"params": self.net["trunk"].parameters()}, {"params": self.net["out"].parameters()}],
            lr=1e-2,
        )

    def widen(self, classes):
        old = self.net["out"]
        self.net["out"] = nn.Linear(12, classes)
        for each in old.parameters():
            self.optimizer.state.pop(each, None)
        self.optimizer.param_groups[1]["params"] = list(self.net["out"].parameters())

    def learn(self, x, y):
        for rows in torch.randperm(len(x)).split(16):
            scores = self.net["out"](torch.relu(self.net["trunk"](x[rows])))
            loss = nn.functional.cross_entropy(scores, y[rows])
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        print(loss.item())


learner = Learner()
for classes in (3, 5):
    if classes > 3:
        learner.widen(classes)
    learner.learn(torch.randn(160, 6), torch.randint(0, classes, (160,)))
