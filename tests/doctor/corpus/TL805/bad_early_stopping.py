import io

import torch
from torch import nn
from torch.nn import functional as F


class EarlyStopping:
    def __init__(self, patience=5):
        self.patience = patience
        self.best_loss = None
        self.best_state = None
        self.counter = 0

    def step(self, loss, model):
        if self.best_loss is None or loss < self.best_loss:
            self.best_loss = loss
            self.best_state = model.state_dict()  # <- TL805
            self.counter = 0
        else:
            self.counter += 1
        return self.counter >= self.patience


class Regressor(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(dim, 32), nn.ReLU(), nn.Linear(32, 1))

    def forward(self, x):
        return self.net(x).squeeze(-1)


def main():
    torch.manual_seed(0)
    x = torch.randn(120, 6)
    y = x[:, 0] * 2 + 0.1 * torch.randn(120)
    model = Regressor(6)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    stopper = EarlyStopping(patience=3)
    for epoch in range(20):
        model.train()
        optimizer.zero_grad()
        loss = F.mse_loss(model(x[:80]), y[:80])
        loss.backward()
        optimizer.step()
        model.eval()
        with torch.no_grad():
            val_loss = F.mse_loss(model(x[80:]), y[80:]).item()
        if stopper.step(val_loss, model):
            break
    torch.save(stopper.best_state, io.BytesIO())


if __name__ == "__main__":
    main()
