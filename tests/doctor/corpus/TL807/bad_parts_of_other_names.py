"""The pretrained encoder is called `encoder` in the file and `body` in the classifier."""
import tempfile
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional as F


def layers():
    return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.ReLU())


class Reconstructs(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = layers(), nn.Linear(16, 8)

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Classifies(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = layers(), nn.Linear(16, 2)

    def forward(self, x):
        return self.head(self.body(x))


def fit(model, loss_of, epochs):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(epochs):
        for rows in torch.randperm(len(x)).split(25):
            optimizer.zero_grad()
            loss_of(model(x[rows]), rows).backward()
            optimizer.step()


torch.manual_seed(0)
x = torch.randn(200, 8)
y = (x[:, 0] > 0).long()
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "pretrained.pt"
    pretrained = Reconstructs()
    fit(pretrained, lambda out, rows: F.mse_loss(out, x[rows]), epochs=2)
    torch.save(pretrained.state_dict(), path)
    model = Classifies()
    model.load_state_dict(torch.load(path), strict=False)  # <- TL807
    fit(model, lambda out, rows: F.cross_entropy(out, y[rows]), epochs=2)
