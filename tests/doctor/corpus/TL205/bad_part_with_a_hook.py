import torch
import torch.nn.functional as F
from torch import nn


class Autoencoder(nn.Module):
    def __init__(self, dim=12, code=24):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, code), nn.ReLU())
        self.decoder = nn.Linear(code, dim)

    def forward(self, x):
        return self.decoder(self.encoder.forward(x))  # <- TL205


active = []
torch.manual_seed(0)
model = Autoencoder()
model.encoder.register_forward_hook(lambda _, args, out: active.append((out > 0).float().mean()))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
for step in range(10):
    x = torch.randn(32, 12)
    loss = F.mse_loss(model(x), x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(loss.item(), len(active))
