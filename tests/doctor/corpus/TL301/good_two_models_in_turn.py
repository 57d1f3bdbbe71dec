"""Each model of an ensemble has its own optimizer; names are used again."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def main(members=3):
    torch.manual_seed(0)
    x = torch.randn(80, 3)
    y = x.norm(dim=1, keepdim=True)
    loader = DataLoader(TensorDataset(x, y), batch_size=20, shuffle=True)
    ensemble = []
    for member in range(members):
        model = nn.Sequential(nn.Linear(3, 16), nn.Tanh(), nn.Linear(16, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for epoch in range(2):
            for inputs, targets in loader:
                loss = nn.functional.mse_loss(model(inputs), targets)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
        ensemble.append(model.eval())
    with torch.no_grad():
        mean = torch.stack([model(x) for model in ensemble]).mean(0)
    print("ensemble mse:", nn.functional.mse_loss(mean, y).item())


if __name__ == "__main__":
    main()
