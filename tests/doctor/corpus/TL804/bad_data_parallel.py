import os
import tempfile

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset

device = "cuda" if torch.cuda.is_available() else "cpu"


class Trainer:
    def __init__(self, net, lr=1e-3):
        self.net = nn.DataParallel(net).to(device)
        self.optimizer = optim.Adam(self.net.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def train(self, loader):
        self.net.train()
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            self.optimizer.zero_grad()
            loss = self.criterion(self.net(x), y)
            loss.backward()
            self.optimizer.step()

    def save(self, path, epoch):
        state = {
            "epoch": epoch,
            "net": self.net.state_dict(),  # <- TL804
            "optimizer": self.optimizer.state_dict(),
        }
        torch.save(state, path)


def main():
    loader = DataLoader(TensorDataset(torch.randn(40, 5), torch.randn(40, 1)), 10, shuffle=True)
    trainer = Trainer(nn.Sequential(nn.Linear(5, 10), nn.ReLU(), nn.Linear(10, 1)))
    with tempfile.TemporaryDirectory() as folder:
        for epoch in range(2):
            trainer.train(loader)
            trainer.save(os.path.join(folder, f"ckpt_{epoch}.pth"), epoch)


if __name__ == "__main__":
    main()
