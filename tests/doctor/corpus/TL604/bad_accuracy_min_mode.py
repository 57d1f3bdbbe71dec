import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


def train(model, loader, optimizer, criterion):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


def validate(model, loader, criterion):
    model.eval()
    loss, correct, total = 0.0, 0, 0
    with torch.no_grad():
        for x, y in loader:
            logits = model(x)
            loss += criterion(logits, y).item() * y.size(0)
            correct += (logits.argmax(dim=1) == y).sum().item()
            total += y.size(0)
    return loss / total, correct / total


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(400, 8)
    y = x[:, :4].argmax(dim=1)
    train_loader = DataLoader(TensorDataset(x[:320], y[:320]), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[320:], y[320:]), batch_size=40)
    model = nn.Sequential(nn.Linear(8, 32), nn.Dropout(0.1), nn.ReLU(), nn.Linear(32, 4))
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    scheduler = optim.lr_scheduler.ReduceLROnPlateau(optimizer, factor=0.5, patience=1)
    for epoch in range(6):
        train(model, train_loader, optimizer, criterion)
        val_loss, val_acc = validate(model, val_loader, criterion)
        scheduler.step(val_acc)  # <- TL604
        print(epoch, val_loss, val_acc, optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main()
