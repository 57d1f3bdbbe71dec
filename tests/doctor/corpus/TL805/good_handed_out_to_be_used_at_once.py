"""A method hands out the live weights, and who asks for a better score's uses them at once."""

import io

import torch
from torch import nn

torch.manual_seed(0)


class Learner:
    def __init__(self):
        self.net = nn.Sequential(nn.Linear(4, 12), nn.Tanh(), nn.Linear(12, 1))

    def weights(self):
        return self.net.state_dict()


x = torch.randn(80, 4)
y = x[:, :2].sum(1, keepdim=True)
learner, shadow = Learner(), Learner()
optimizer = torch.optim.SGD(learner.net.parameters(), lr=0.05, momentum=0.9)
best, file = float("inf"), io.BytesIO()
for epoch in range(8):
    learner.net.train()
    for rows in torch.randperm(60).split(12):
        loss = nn.functional.mse_loss(learner.net(x[rows]), y[rows])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    learner.net.eval()
    with torch.no_grad():
        error = nn.functional.mse_loss(learner.net(x[60:]), y[60:]).item()
    if error < best:
        best, weights = error, learner.weights()
        shadow.net.load_state_dict(weights)
        file.seek(0)
        torch.save(weights, file)
    print(epoch, error)
file.seek(0)
learner.net.load_state_dict(torch.load(file, weights_only=True))
