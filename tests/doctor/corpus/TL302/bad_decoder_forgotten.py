"""An encoder and a decoder; the optimizer was given one of them."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Autoencoder(nn.Module):
    def __init__(self, size=16, code=4):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(size, 32), nn.ReLU(), nn.Linear(32, code))
        self.decoder = nn.Sequential(nn.Linear(code, 32), nn.ReLU(), nn.Linear(32, size))

    def forward(self, x):
        return self.decoder(self.encoder(x))


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(96, 16)), batch_size=16, shuffle=True)
model = Autoencoder()
optimizer = torch.optim.Adam(model.encoder.parameters(), lr=1e-3)  # <- TL302
for epoch in range(2):
    for (x,) in loader:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), x)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
