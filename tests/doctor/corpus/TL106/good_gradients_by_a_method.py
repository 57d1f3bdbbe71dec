"""The Fisher information of a finished task: the network itself hands its gradients out."""
import torch
from torch import nn


class Net(nn.Sequential):
    def get_grads(self):
        return torch.cat([each.grad.flatten() for each in self.parameters()])


class Learner:
    def __init__(self, parts):
        self.net, self.opt = parts

    def observe(self, inputs, targets):
        self.opt.zero_grad()
        loss = nn.functional.cross_entropy(self.net(inputs), targets)
        loss.backward()
        self.opt.step()
        return loss.item()

    def end_task(self, pairs):
        total = None
        for inputs, targets in pairs:
            self.opt.zero_grad()
            loss = nn.functional.cross_entropy(self.net(inputs), targets)
            loss.backward()
            squares = self.net.get_grads() ** 2
            total = squares if total is None else total + squares
        return total / len(pairs)


if __name__ == "__main__":
    torch.manual_seed(0)
    net = Net(nn.Linear(4, 3))
    learner = globals()["Learner"]((net, torch.optim.SGD(net.parameters(), lr=0.1)))
    rounds = [(torch.randn(8, 4), torch.randint(0, 3, (8,))) for _ in range(3)]
    for pair in rounds:
        learner.observe(*pair)
    print(learner.end_task(rounds))
