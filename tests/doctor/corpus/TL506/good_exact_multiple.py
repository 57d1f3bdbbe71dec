import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    accumulate = 4
    loader = DataLoader(TensorDataset(torch.randn(128, 6), torch.randn(128, 1)), batch_size=8, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        for step, (x, y) in enumerate(loader, start=1):
            (F.mse_loss(model(x), y) / accumulate).backward()
            if step % accumulate == 0:
                optimizer.step()
                optimizer.zero_grad()


if __name__ == "__main__":
    main()
