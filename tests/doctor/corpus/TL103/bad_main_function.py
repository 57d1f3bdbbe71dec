import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def main():
    torch.manual_seed(0)
    features = torch.randn(100, 4)
    prices = features @ torch.tensor([[1.0], [-2.0], [0.5], [3.0]]) + 0.1
    train_loader = DataLoader(TensorDataset(features, prices), batch_size=20, shuffle=True)

    net = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 1))
    criterion = nn.MSELoss()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)

    for epoch in range(5):
        for x, y in train_loader:
            optimizer.zero_grad()
            pred = net(x)
            loss = criterion(pred, y)
            optimizer.step()  # <- TL103
            loss.backward()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
