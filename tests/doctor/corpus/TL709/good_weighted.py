import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def validate(model, loader, criterion):
    model.eval()
    val_loss, correct = 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            output = model(x)
            val_loss += criterion(output, y).item() * x.size(0)
            correct += (output.argmax(1) == y).sum().item()
    return val_loss / len(loader.dataset), correct / len(loader.dataset)


def main():
    train_set = TensorDataset(torch.randn(256, 4), torch.randint(0, 2, (256,)))
    val_set = TensorDataset(torch.randn(100, 4), torch.randint(0, 2, (100,)))
    train_loader = DataLoader(train_set, batch_size=32, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=32)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, *validate(model, val_loader, criterion))


if __name__ == "__main__":
    main()
