"""One model, task after task, client after client: each has an optimizer of its own."""

import copy

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


def learn_tasks(model, tasks):
    for task_id, task in enumerate(tasks):
        optimizer = optim.Adam(model.parameters(), lr=1e-3)
        for epoch in range(2):
            for x, y in DataLoader(task, batch_size=16, shuffle=True):
                optimizer.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                optimizer.step()
        print("task", task_id, loss.item())


class Client:
    def __init__(self, data):
        self.loader = DataLoader(data, batch_size=16, shuffle=True)

    def update(self, global_model):
        model = copy.deepcopy(global_model)
        optimizer = optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
        for x, y in self.loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        return model.state_dict()


def federate(model, clients, rounds=2):
    for _ in range(rounds):
        states = [client.update(model) for client in clients]
        mean = {k: torch.stack([s[k] for s in states]).mean(0) for k in states[0]}
        model.load_state_dict(mean)


torch.manual_seed(0)
tasks = [TensorDataset(torch.randn(48, 6), torch.randint(0, 3, (48,))) for _ in range(3)]
net = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3))
learn_tasks(net, tasks)
federate(net, [Client(task) for task in tasks])
