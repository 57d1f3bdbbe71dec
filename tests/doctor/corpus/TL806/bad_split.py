import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


def make_loaders():
    x = torch.linspace(0, 1, 90).unsqueeze(1)
    train_set, val_set = random_split(TensorDataset(x, torch.sin(6 * x)), [60, 30])
    return DataLoader(train_set, batch_size=20, shuffle=True), DataLoader(val_set, batch_size=30)


class Experiment:
    def __init__(self, seed):
        self.train_loader, self.val_loader = make_loaders()
        torch.manual_seed(seed)  # <- TL806
        self.model = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 1))
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=0.01)

    def run(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                nn.functional.mse_loss(self.model(x), y).backward()
                self.optimizer.step()
            self.model.eval()
            with torch.no_grad():
                for x, y in self.val_loader:
                    print(epoch, nn.functional.mse_loss(self.model(x), y).item())


if __name__ == "__main__":
    Experiment(seed=0).run(2)
