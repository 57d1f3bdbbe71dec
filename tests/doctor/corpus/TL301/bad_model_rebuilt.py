import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def build_model(hidden):
    return nn.Sequential(nn.Linear(6, hidden), nn.ReLU(), nn.Linear(hidden, 1))


class Experiment:
    def __init__(self, hidden=16, lr=1e-2):
        self.model = build_model(hidden)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=lr)
        self.criterion = nn.MSELoss()

    def prepare(self, hidden):
        self.model = build_model(hidden)  # <- TL301

    def train(self, loader, epochs):
        for epoch in range(epochs):
            for x, y in loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(96, 6)
    loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=16, shuffle=True)
    experiment = Experiment()
    experiment.prepare(hidden=32)
    experiment.train(loader, epochs=2)
