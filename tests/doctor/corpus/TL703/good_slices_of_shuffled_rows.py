"""Rows that were made class after class, and are sliced in an order that is drawn anew; and a network
that sees real and made samples in turn, a batch of each."""

import torch
import torch.nn as nn
import torch.nn.functional as F

SIZE = 20


def petals(each):
    kinds = [torch.randn(each, 4) + shift for shift in (-1.0, 0.0, 1.5)]
    labels = [torch.zeros(each), torch.ones(each), torch.full((each,), 2.0)]
    return torch.cat(kinds), torch.cat(labels).long()


def train(net, x, y, epochs):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(epochs):
        order = torch.randperm(len(x))
        x, y = x[order], y[order]
        for start in range(0, len(x), SIZE):
            loss = F.cross_entropy(net(x[start : start + SIZE]), y[start : start + SIZE])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


def tell_apart(real, steps):
    critic = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.05)
    for _ in range(steps):
        for label in (1, 0):
            samples = real[torch.randint(len(real), (SIZE,))] if label else torch.randn(SIZE, 4)
            loss = F.cross_entropy(critic(samples), torch.full((SIZE,), label))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return loss.item()


torch.manual_seed(2)
x, y = petals(60)
train(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)), x, y, epochs=5)
print(tell_apart(x[y == 2], 40))
