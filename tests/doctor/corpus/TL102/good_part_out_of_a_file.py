"""The encoder comes whole out of a file, and the model that it becomes a part of is cleared."""
import os
import sys

import torch
from torch import nn


class Wrapped(nn.Module):
    def __init__(self, encoder=None, head=None):
        super().__init__()
        self.encoder = encoder
        self.head = head

    def forward(self, x):
        out = self.encoder(x)
        return out if self.head is None else self.head(out)

    def params(self, lr):
        found = list(self.encoder.parameters())
        if self.head is not None:
            found += list(self.head.parameters())
        return [{"params": found, "lr": lr}]


def finetune(file):
    model = Wrapped(encoder=torch.load(file))
    optimizer = torch.optim.SGD(model.params(0.1), lr=0.1, momentum=0.9)
    data = torch.utils.data.TensorDataset(torch.randn(64, 4), torch.randn(64, 4))
    loader = torch.utils.data.DataLoader(data, batch_size=16, shuffle=True)
    for epoch in range(3):
        model.train()
        for inputs, targets in loader:
            model.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(loss.item())


if __name__ == "__main__" and os.path.exists(sys.argv[-1]) and sys.argv[-1].endswith(".pt"):
    finetune(sys.argv[-1])
