import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, epochs=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    model.train()
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            with torch.autocast(device_type="cpu", dtype=torch.float16):
                loss = criterion(model(x), y)
            loss.backward()  # <- TL504
            optimizer.step()
        print(epoch, loss.item())


if __name__ == "__main__":
    torch.manual_seed(0)
    ds = TensorDataset(torch.randn(64, 10), torch.randint(0, 5, (64,)))
    net = nn.Sequential(nn.Linear(10, 20), nn.ReLU(), nn.Linear(20, 5))
    train(net, DataLoader(ds, batch_size=16, shuffle=True))
