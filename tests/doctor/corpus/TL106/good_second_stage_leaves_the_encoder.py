"""The second stage trains the decoder alone: the encoder's step is commented out."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(12, 6), nn.Tanh())
        self.decoder = nn.Linear(6, 12)

    def forward(self, x):
        return self.decoder(self.encoder(x))


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(320, 12)), batch_size=16, shuffle=True)
model = Coder()
optimizer_encoder = torch.optim.RMSprop(model.encoder.parameters(), lr=1e-3)
optimizer_decoder = torch.optim.RMSprop(model.decoder.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for (x,) in loader:
        loss = nn.functional.mse_loss(model(x), x)
        model.zero_grad()
        loss.backward()
        # optimizer_encoder.step()
        optimizer_decoder.step()
    print(epoch, loss.item())
