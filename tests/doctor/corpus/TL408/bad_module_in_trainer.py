import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, dim, classes, epochs=2, lr=1e-2):
        self.model = nn.Sequential(
            nn.Linear(dim, 32),
            nn.ReLU(),
            nn.Linear(32, classes),
        )
        self.log_softmax = nn.LogSoftmax(dim=0)
        self.criterion = nn.NLLLoss()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.epochs = epochs

    def train_one_epoch(self, loader):
        self.model.train()
        total = 0.0
        for x, y in loader:
            log_probs = self.log_softmax(self.model(x))  # <- TL408
            loss = self.criterion(log_probs, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(loader)

    def fit(self, loader):
        for epoch in range(self.epochs):
            print(epoch, self.train_one_epoch(loader))


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(192, 9)
    y = x[:, :3].argmax(dim=1)
    Trainer(9, 3).fit(DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True))


if __name__ == "__main__":
    main()
