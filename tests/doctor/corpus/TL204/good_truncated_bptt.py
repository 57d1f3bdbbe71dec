import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset

# Truncated back-propagation through time: the loss of K steps is summed, then sent back.
K = 5


class Forecaster(nn.Module):
    def __init__(self, hidden=16):
        super().__init__()
        self.cell = nn.GRUCell(1, hidden)
        self.out = nn.Linear(hidden, 1)

    def forward(self, x, h):
        h = self.cell(x, h)
        return self.out(h), h


def train():
    torch.manual_seed(0)
    waves = torch.sin(torch.linspace(0, 12, 41) + torch.rand(32, 1) * 6).unsqueeze(-1)
    loader = DataLoader(TensorDataset(waves), batch_size=8, shuffle=True)
    model = Forecaster()
    optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
    mse = nn.MSELoss()
    for epoch in range(2):
        epoch_loss = 0.0
        for (batch,) in loader:
            hidden = torch.zeros(batch.size(0), 16)
            loss = 0
            for t in range(batch.size(1) - 1):
                prediction, hidden = model(batch[:, t], hidden)
                loss = loss + mse(prediction, batch[:, t + 1])
                if (t + 1) % K == 0:
                    optimizer.zero_grad()
                    loss.backward()
                    optimizer.step()
                    epoch_loss += loss.item()
                    hidden = hidden.detach()
                    loss = 0
        print(f"epoch {epoch}: {epoch_loss:.3f}")


if __name__ == "__main__":
    train()
