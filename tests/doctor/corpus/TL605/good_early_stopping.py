import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    model.eval()
    total = 0.0
    with torch.no_grad():
        for x, y in loader:
            total += nn.functional.mse_loss(model(x), y).item() * len(x)
    return total / len(loader.dataset)


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(160, 4)
    y = x.sum(dim=1, keepdim=True)
    train_loader = DataLoader(TensorDataset(x[:128], y[:128]), batch_size=32, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[128:], y[128:]), batch_size=32)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    max_epochs, patience = 30, 2
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=max_epochs)
    best, waited = float("inf"), 0
    for epoch in range(max_epochs):
        model.train()
        for inputs, targets in train_loader:
            loss = nn.functional.mse_loss(model(inputs), targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        scheduler.step()
        val_loss = evaluate(model, val_loader)
        if val_loss < best * 0.9:
            best, waited = val_loss, 0
        else:
            waited += 1
            if waited >= patience:
                print("stopped early at", epoch)
                break
        print(epoch, val_loss)


if __name__ == "__main__":
    main()
