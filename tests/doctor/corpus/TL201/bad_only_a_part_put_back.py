"""Encoder and decoder; after validation only the encoder goes back to training."""

from dataclasses import dataclass

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


@dataclass
class Config:
    epochs: int = 2
    batch_size: int = 16
    hidden: int = 24
    lr: float = 2e-3


class Encoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(12, hidden), nn.ReLU(), nn.Dropout(0.1))

    def forward(self, x):
        return self.net(x)


class Decoder(nn.Module):
    def __init__(self, hidden):
        super().__init__()
        self.norm = nn.BatchNorm1d(hidden)
        self.out = nn.Linear(hidden, 12)

    def forward(self, z):
        return self.out(self.norm(z))


def main(cfg=Config()):
    torch.manual_seed(0)
    data = torch.randn(128, 12)
    train_loader = DataLoader(TensorDataset(data[:96]), cfg.batch_size, shuffle=True)
    val_loader = DataLoader(TensorDataset(data[96:]), cfg.batch_size)
    encoder, decoder = Encoder(cfg.hidden), Decoder(cfg.hidden)
    params = list(encoder.parameters()) + list(decoder.parameters())
    optimizer = optim.Adam(params, lr=cfg.lr)
    mse = nn.MSELoss()

    for epoch in range(cfg.epochs):
        encoder.train()
        for (x,) in train_loader:
            z = encoder(x)
            recon = decoder(z)  # <- TL201
            loss = mse(recon, x)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

        encoder.eval()
        decoder.eval()
        total = 0.0
        with torch.no_grad():
            for (x,) in val_loader:
                total += mse(decoder(encoder(x)), x).item() * x.size(0)
        print(f"epoch {epoch}: val mse {total / len(val_loader.dataset):.4f}")


if __name__ == "__main__":
    main()
