import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, criterion, optimizer):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def validate(model, loader, criterion):
    model.eval()
    val_loss = 0.0
    with torch.no_grad():
        for x, y in loader:
            loss = criterion(model(x), y)
            val_loss += loss.item()
    return val_loss / len(loader)  # <- TL709


def main():
    torch.manual_seed(0)
    train_set = TensorDataset(torch.randn(256, 4), torch.randn(256, 1))
    val_set = TensorDataset(torch.randn(100, 4), torch.randn(100, 1))
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=32, shuffle=False)
    model = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.MSELoss()
    for epoch in range(3):
        train_epoch(model, train_loader, criterion, optimizer)
        print(epoch, validate(model, val_loader, criterion))


if __name__ == "__main__":
    main()
