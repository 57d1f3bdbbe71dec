"""Each round a client gets the net anew; its update never clears a gradient."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)


class Client:
    def __init__(self, data):
        self._model = None
        self.loader = DataLoader(data, batch_size=16, shuffle=True)

    @property
    def model(self):
        return self._model

    @model.setter
    def model(self, model):
        self._model = model

    def update(self):
        optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
        for x, y in self.loader:
            loss = F.mse_loss(self.model(x), y)
            loss.backward()
            optimizer.step()  # <- TL102


client = Client(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)))
client.model = nn.Linear(4, 1)
client.update()
