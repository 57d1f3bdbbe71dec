import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


@torch.no_grad()
def evaluate(model, loader, criterion):
    total = 0.0
    for images, labels in loader:
        total = total + criterion(model(images), labels)
    return (total / len(loader.dataset)).item()  # <- TL720


def main():
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(20, 1, 4, 4), torch.randint(0, 2, (20,)))
    model = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        for images, labels in DataLoader(data, batch_size=5, shuffle=True):
            optimizer.zero_grad()
            criterion(model(images), labels).backward()
            optimizer.step()
        print(evaluate(model, DataLoader(data, batch_size=5), criterion))


main()
