import torch
from torch import nn


class Averager:
    def __init__(self):
        self.best = None
        self.best_loss = float("inf")

    def look(self, model, loss):
        if loss < self.best_loss:
            self.best_loss = loss
            self.best = {key: value.detach().clone() for key, value in model.state_dict().items()}


def train(model, optimizer, averager, x, y, epochs=6):
    for epoch in range(epochs):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        averager.look(model, loss.item())


torch.manual_seed(0)
model = nn.Linear(4, 1)
averager = Averager()
train(model, torch.optim.Adam(model.parameters(), lr=0.1), averager, torch.randn(30, 4), torch.randn(30, 1))
model.load_state_dict(averager.best)
final = model.state_dict()
print({key: tuple(value.shape) for key, value in final.items()})
