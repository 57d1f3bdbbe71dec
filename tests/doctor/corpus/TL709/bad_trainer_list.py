import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr=1e-2):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        self.criterion = nn.CrossEntropyLoss()
        self.history = []

    def train_epoch(self):
        self.model.train()
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            self.criterion(self.model(x), y).backward()
            self.optimizer.step()

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        losses = []
        for x, y in self.val_loader:
            losses.append(self.criterion(self.model(x), y).item())
        return sum(losses) / len(losses)  # <- TL709

    def fit(self, epochs):
        for _ in range(epochs):
            self.train_epoch()
            self.history.append(self.validate())


def loaders():
    train = TensorDataset(torch.randn(200, 5), torch.randint(0, 3, (200,)))
    val = TensorDataset(torch.randn(70, 5), torch.randint(0, 3, (70,)))
    return DataLoader(train, batch_size=20, shuffle=True), DataLoader(val, batch_size=20)


if __name__ == "__main__":
    trainer = Trainer(nn.Linear(5, 3), *loaders())
    trainer.fit(2)
    print(trainer.history)
