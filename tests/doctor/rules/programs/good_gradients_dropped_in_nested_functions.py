import torch
from torch import nn

from loops import clear_gradients


def attribute(job):
    network, criterion = job.network(), nn.CrossEntropyLoss()
    weights = list(network.parameters())
    optimizer = torch.optim.Adam(weights, lr=job.rate, fused=True)

    def epoch():
        for inputs, targets in job.batches:
            criterion(network(inputs), targets).backward()
            optimizer.step()
            for weight in weights:
                weight.grad = None

    return epoch


def removed(job):
    network, criterion = job.network(), nn.CrossEntropyLoss()
    weights = tuple(network.parameters())
    optimizer = torch.optim.SGD(weights, lr=job.rate)

    def epoch():
        for inputs, targets in job.batches:
            criterion(network(inputs), targets).backward()
            optimizer.step()
            for weight in weights:
                del weight.grad

    return epoch


def zeroed(job):
    network, criterion = job.network(), nn.CrossEntropyLoss()
    weights = [each for each in network.parameters() if each.requires_grad]
    optimizer = torch.optim.SGD(weights, lr=job.rate)

    def epoch():
        for inputs, targets in job.batches:
            for weight in weights:
                if weight.grad is not None:
                    weight.grad.zero_()
            criterion(network(inputs), targets).backward()
            optimizer.step()

    return epoch


def at_once(job):
    network, criterion = job.network(), nn.CrossEntropyLoss()
    weights = list(network.parameters())
    optimizer = torch.optim.SGD(weights, lr=job.rate)

    def epoch():
        for inputs, targets in job.batches:
            criterion(network(inputs), targets).backward()
            optimizer.step()
            torch._foreach_zero_([weight.grad for weight in weights])

    return epoch


def elsewhere(job):
    network, criterion = job.network(), nn.CrossEntropyLoss()
    weights = list(network.parameters())
    optimizer = torch.optim.SGD(weights, lr=job.rate)

    def epoch():
        for inputs, targets in job.batches:
            criterion(network(inputs), targets).backward()
            optimizer.step()
            clear_gradients(weights)

    return epoch


def deleted_in_a_plain_loop():
    network = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for _ in range(100):
        loss = nn.functional.mse_loss(network(torch.randn(8, 4)), torch.randn(8, 2))
        loss.backward()
        optimizer.step()
        for weight in network.parameters():
            del weight.grad
