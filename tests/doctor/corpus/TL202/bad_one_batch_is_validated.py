"""Every few updates one held-out batch is decoded, by a method of the network, in train mode."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(10, 20), nn.BatchNorm1d(20), nn.ReLU())
        self.decode = nn.Linear(20, 10)

    def forward(self, rows):
        return self.decode(self.encode(rows))

    def rebuild(self, rows):
        return self.decode(self.encode(rows)).clamp(-2, 2)


def validate(coder, batches):
    with torch.no_grad():
        for (rows,) in batches:
            break
        rebuilt = coder.rebuild(rows)  # <- TL202
        return (rebuilt - rows).abs().mean().item()


def train(coder, batches, held_out):
    optimizer = torch.optim.Adam(coder.parameters(), lr=1e-3)
    coder.train()
    for epoch in range(2):
        for update, (rows,) in enumerate(batches):
            optimizer.zero_grad()
            nn.functional.mse_loss(coder(rows), rows).backward()
            optimizer.step()
            if update % 5 == 4:
                print(epoch, update, validate(coder, held_out))


if __name__ == "__main__":
    torch.manual_seed(8)
    torch.set_num_threads(1)
    data = torch.randn(240, 10)
    batches = DataLoader(TensorDataset(data[:200]), batch_size=20, shuffle=True)
    train(Coder(), batches, DataLoader(TensorDataset(data[200:]), batch_size=20))
