"""The batches are slices of two tensors, from the first class to the last, in each epoch."""

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
        for start in range(0, x.shape[0], SIZE):
            inputs, labels = x[start : start + SIZE], y[start : start + SIZE]
            loss = F.cross_entropy(net(inputs), labels)  # <- TL703
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(epoch, loss.item())


torch.manual_seed(2)
x, y = petals(60)
train(nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 3)), x, y, epochs=5)
