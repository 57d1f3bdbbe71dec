"""Validation of a model that may be a plain function with a switch of its own."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(8, 16), nn.Dropout(0.3), nn.Linear(16, 3))

    def forward(self, inputs):
        return self.layers(inputs)


def evaluate_accuracy(batches, net, device=None):
    if device is None and isinstance(net, torch.nn.Module):
        device = list(net.parameters())[0].device
    correct, count = 0.0, 0
    with torch.no_grad():
        for inputs, labels in batches:
            if isinstance(net, torch.nn.Module):
                net.eval()
                outputs = net(inputs.to(device))
                correct += (outputs.argmax(dim=1) == labels.to(device)).float().sum().item()
                net.train()
            else:
                if "is_training" in net.__code__.co_varnames:
                    outputs = net(inputs, is_training=False)
                    correct += (outputs.argmax(dim=1) == labels).float().sum().item()
                else:
                    correct += (net(inputs).argmax(dim=1) == labels).float().sum().item()
            count += labels.shape[0]
    return correct / count


def train(net, batches, held_out, optimizer, device, epochs):
    net = net.to(device)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        total, count = 0.0, 0
        for inputs, labels in batches:
            inputs, labels = inputs.to(device), labels.to(device)
            loss = loss_function(net(inputs), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
            count += len(labels)
        print(epoch, total / count, evaluate_accuracy(held_out, net))


torch.manual_seed(1)
data = torch.randn(96, 8)
answers = data[:, :3].argmax(1)
batches = DataLoader(TensorDataset(data[:64], answers[:64]), batch_size=16, shuffle=True)
held_out = DataLoader(TensorDataset(data[64:], answers[64:]), batch_size=16)
net = Net()
train(net, batches, held_out, torch.optim.Adam(net.parameters()), torch.device("cpu"), 3)
