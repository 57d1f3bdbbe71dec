import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Pipeline:
    """No module: it has a `forward` all the same."""

    def __init__(self, scale):
        self.scale = scale

    def forward(self, x):
        return x * self.scale


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 4), torch.randn(96, 2)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    preprocess = Pipeline(0.5)
    model = nn.Sequential(nn.Linear(4, 16), nn.ELU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(2):
        for inputs, targets in loader:
            loss = nn.functional.mse_loss(model(preprocess.forward(inputs)), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    print(loss.item())


if __name__ == "__main__":
    main()
