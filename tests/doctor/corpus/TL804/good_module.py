import io

import torch
from torch import nn, optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(5, 1)

    def forward(self, x):
        return self.fc(x)


def unwrap(model):
    return model.module if isinstance(model, nn.DataParallel) else model


def main():
    loader = DataLoader(TensorDataset(torch.randn(40, 5), torch.randn(40, 1)), 10, shuffle=True)
    model = nn.DataParallel(Net())
    optimizer = optim.Adam(model.parameters())
    for epoch in range(2):
        for x, y in loader:
            optimizer.zero_grad()
            nn.functional.mse_loss(model(x), y).backward()
            optimizer.step()
        torch.save(model.module.state_dict(), io.BytesIO())
        torch.save({"model": unwrap(model).state_dict()}, io.BytesIO())


if __name__ == "__main__":
    main()
