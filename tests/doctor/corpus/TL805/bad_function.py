import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


def evaluate(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def train_model(model, train_loader, val_loader, criterion, optimizer, num_epochs=3):
    best_model_wts = copy.deepcopy(model.state_dict())
    best_acc = 0.0
    for epoch in range(num_epochs):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        acc = evaluate(model, val_loader)
        if acc > best_acc:
            best_acc = acc
            best_model_wts = model.state_dict()  # <- TL805
    model.load_state_dict(best_model_wts)
    return model


def main():
    torch.manual_seed(0)
    train = TensorDataset(torch.randn(96, 4), torch.randint(0, 2, (96,)))
    val = TensorDataset(torch.randn(48, 4), torch.randint(0, 2, (48,)))
    model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Linear(16, 2))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    model = train_model(
        model,
        DataLoader(train, batch_size=16, shuffle=True),
        DataLoader(val, batch_size=16),
        nn.CrossEntropyLoss(),
        optimizer,
    )
    print(evaluate(model, DataLoader(val, batch_size=16)))


if __name__ == "__main__":
    main()
