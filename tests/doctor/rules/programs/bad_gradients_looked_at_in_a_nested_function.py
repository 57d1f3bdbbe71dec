import torch
from torch import nn

from loops import log_gradients


def build(job):
    network, criterion = job.network(), nn.CrossEntropyLoss()
    weights = list(network.parameters())
    optimizer = torch.optim.Adam(weights, lr=job.rate)

    def epoch():
        for inputs, targets in job.batches:
            criterion(network(inputs), targets).backward()
            optimizer.step()  # <- TL102
            for weight in weights:
                weight.bias = None
            log_gradients(weights)

    return epoch
