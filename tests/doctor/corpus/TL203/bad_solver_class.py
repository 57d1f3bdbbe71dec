"""A solver whose test method forgets no_grad."""

import torch
from torch import nn
from torch.utils import data


class AutoEncoder(nn.Module):
    def __init__(self, dim, code):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(dim, 16), nn.ReLU(), nn.Linear(16, code))
        self.decoder = nn.Sequential(nn.Linear(code, 16), nn.ReLU(), nn.Linear(16, dim))

    def forward(self, x):
        return self.decoder(self.encoder(x))


class Solver(object):
    def __init__(self, config):
        self.config = config
        self.build_model()
        self.build_data()

    def build_model(self):
        self.model = AutoEncoder(self.config["dim"], self.config["code"])
        self.optim = torch.optim.Adam(self.model.parameters(), lr=self.config["lr"])
        self.mse = nn.MSELoss(reduction="sum")

    def build_data(self):
        samples = torch.randn(96, self.config["dim"])
        self.train_loader = data.DataLoader(samples[:64], batch_size=16, shuffle=True)
        self.test_loader = data.DataLoader(samples[64:], batch_size=16)

    def train(self):
        for epoch in range(self.config["epochs"]):
            self.model.train()
            for x in self.train_loader:
                self.optim.zero_grad()
                loss = self.mse(self.model(x), x) / x.size(0)
                loss.backward()
                self.optim.step()
            print("epoch", epoch, "reconstruction", self.test())

    def test(self):
        self.model.eval()
        total = 0.0
        for x in self.test_loader:
            reconstruction = self.model(x)  # <- TL203
            total += self.mse(reconstruction, x).item()
        return total / len(self.test_loader.dataset)


if __name__ == "__main__":
    torch.manual_seed(0)
    Solver({"dim": 10, "code": 3, "lr": 1e-3, "epochs": 2}).train()
