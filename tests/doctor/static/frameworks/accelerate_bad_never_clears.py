import torch
from accelerate import Accelerator
from torch import nn


def run(network, dataset):
    accelerator = Accelerator()
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01)
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True)
    network, optimizer, loader = accelerator.prepare(network, optimizer, loader)
    for _ in range(10):
        for x, y in loader:
            loss = criterion(network(x), y)
            accelerator.backward(loss)
            accelerator.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()  # <- TL102
