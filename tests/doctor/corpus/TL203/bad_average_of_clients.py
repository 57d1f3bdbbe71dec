"""Copies of the model are trained, one for each client; their average is tested with a graph."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
clients = [TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,))) for _ in range(3)]


def train_client(net, data):
    net.train()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for _ in range(2):
        for x, y in DataLoader(data, batch_size=8, shuffle=True):
            optimizer.zero_grad()
            F.cross_entropy(net(x), y).backward()
            optimizer.step()
    return net.state_dict()


def average(states):
    mean = copy.deepcopy(states[0])
    for key in mean:
        for state in states[1:]:
            mean[key] += state[key]
        mean[key] = torch.div(mean[key], len(states))
    return mean


def test(net, data):
    net.eval()
    correct = 0
    for x, y in DataLoader(data, batch_size=8):
        predicted = net(x)  # <- TL203
        correct += (predicted.argmax(1) == y).sum().item()
    return correct / len(data)


net = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
for _ in range(4):
    states = []
    for client in clients:
        states.append(copy.deepcopy(train_client(copy.deepcopy(net), client)))
    net.load_state_dict(average(states))
print(test(net, TensorDataset(torch.randn(32, 6), torch.randint(0, 3, (32,)))))
