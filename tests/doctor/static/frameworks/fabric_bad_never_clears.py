import lightning as L
import torch
from torch import nn


def train(network, dataset):
    fabric = L.Fabric(precision="bf16-mixed")
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-3)
    network, optimizer = fabric.setup(network, optimizer)
    loader = fabric.setup_dataloaders(
        torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True)
    )
    for epoch in range(4):
        for x, y in loader:
            loss = nn.functional.mse_loss(network(x), y)
            fabric.backward(loss)
            optimizer.step()  # <- TL102
