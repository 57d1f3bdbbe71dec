# Stochastic weight averaging: batch-norm statistics are taken anew, in train mode, before the test.
import torch
import torch.nn as nn
from torch.optim.swa_utils import SWALR, AveragedModel, update_bn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def main(epochs=4, swa_start=2):
    torch.manual_seed(0)
    x, y = torch.randn(160, 8), torch.randint(0, 3, (160,))
    train_loader = DataLoader(TensorDataset(x[:128], y[:128]), batch_size=32, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[128:], y[128:]), batch_size=32)
    model = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    swa_model = AveragedModel(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    swa_scheduler = SWALR(optimizer, swa_lr=0.05)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        model.train()
        for xb, yb in train_loader:
            optimizer.zero_grad()
            criterion(model(xb), yb).backward()
            optimizer.step()
        if epoch >= swa_start:
            swa_model.update_parameters(model)
            swa_scheduler.step()
    update_bn(train_loader, swa_model)
    print("swa accuracy:", evaluate(swa_model, test_loader))


if __name__ == "__main__":
    main()
