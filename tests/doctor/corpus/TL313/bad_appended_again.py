"""Each turn of the loop appends the layer that was made before it."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, sizes=(16, 16, 16)):
        super().__init__()
        hidden = nn.Sequential(nn.Linear(16, 16), nn.ReLU())
        layers = [nn.Linear(10, 16), nn.ReLU()]
        for _ in sizes:
            layers.append(hidden)  # noqa: PERF401  # <- TL313
        layers.append(nn.Linear(16, 3))
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 10), torch.randint(0, 3, (96,))
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = Net()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for inputs, labels in loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(inputs), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch} loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
