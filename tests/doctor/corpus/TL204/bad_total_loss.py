import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


def train_epoch(model, loader, criterion, optimizer, device):
    model.train()
    total_loss = 0
    for src, tgt in loader:
        src, tgt = src.to(device), tgt.to(device)
        optimizer.zero_grad()
        output = model(src)
        loss = criterion(output, tgt)
        loss.backward()
        optimizer.step()
        total_loss += loss * src.size(0)  # <- TL204
    return total_loss / len(loader.dataset)


def main():
    torch.manual_seed(0)
    device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
    x = torch.randn(128, 7)
    y = x.cumsum(dim=1)
    loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(7, 32), nn.ReLU(), nn.Linear(32, 7)).to(device)
    criterion = nn.MSELoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        loss = train_epoch(model, loader, criterion, optimizer, device)
        print("Epoch: {:02d} | Train Loss: {:.3f}".format(epoch + 1, loss))


if __name__ == "__main__":
    main()
