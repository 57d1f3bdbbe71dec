"""Workers are started once for all of the data."""

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Noise(Dataset):
    def __len__(self):
        return 900

    def __getitem__(self, index):
        x = torch.randn(5)
        return x, x.square().mean().reshape(1)


def main():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, fused=True)
    for x, y in DataLoader(Noise(), batch_size=20, shuffle=True, num_workers=2):
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
