import copy

import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset, random_split


@torch.no_grad()
def accuracy(model, loader):
    model.eval()
    correct = 0
    for x, y in loader:
        correct += (model(x).argmax(dim=1) == y).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(300, 6), torch.randint(0, 2, (300,)))
    train_set, val_set, test_set = random_split(data, [200, 50, 50])
    train_loader = DataLoader(train_set, batch_size=20, shuffle=True)
    val_loader = DataLoader(val_set, batch_size=50)
    test_loader = DataLoader(test_set, batch_size=50)
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    best_acc, best_state = 0.0, copy.deepcopy(model.state_dict())
    for epoch in range(4):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            loss.backward()
            optimizer.step()
        val_acc = accuracy(model, val_loader)
        if val_acc > best_acc:
            best_acc = val_acc
            best_state = copy.deepcopy(model.state_dict())

    model.load_state_dict(best_state)
    print(f"test accuracy: {accuracy(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
