"""What is called `optimizer` holds two of them, and the scaler steps one by its name."""
import torch
from torch import nn


class Both:
    def __init__(self, net, critic):
        self.G = torch.optim.Adam(net.parameters(), lr=1e-3)
        self.D = torch.optim.Adam(critic.parameters(), lr=1e-3) if critic is not None else None

    def zero_grad(self):
        self.G.zero_grad()


class Trainer:
    def __init__(self, net, criterion, optimizer, batches, amp=False):
        self.net, self.criterion, self.optimizer = net, criterion, optimizer
        self.batches = batches
        self.scaler = torch.amp.GradScaler("cpu", enabled=amp)

    def train(self, epoch):
        self.net.train()
        for x, y in self.batches:
            self.optimizer.zero_grad()
            loss = self.criterion(self.net(x), y)
            self.scaler.scale(loss).backward()
            self.scaler.step(self.optimizer.G)
            self.scaler.update()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
    batches = [(torch.randn(8, 4), torch.randn(8, 1)) for _ in range(6)]
    trainer = Trainer(net, nn.MSELoss(), Both(net, None), batches)
    for epoch in range(2):
        trainer.train(epoch)
