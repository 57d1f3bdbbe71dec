import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class AverageMeter:
    def __init__(self):
        self.sum = 0.0
        self.count = 0

    def update(self, value, n=1):
        self.sum += value * n
        self.count += n

    @property
    def avg(self):
        return self.sum / self.count


def validate(model, loader, criterion):
    losses = AverageMeter()
    model.eval()
    with torch.no_grad():
        for images, target in loader:
            loss = criterion(model(images), target)
            losses.update(loss.item(), images.size(0))
    return losses.avg


def main():
    model = nn.Linear(7, 4)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    train = DataLoader(TensorDataset(torch.randn(64, 7), torch.randint(0, 4, (64,))), 16, True)
    val = DataLoader(TensorDataset(torch.randn(50, 7), torch.randint(0, 4, (50,))), 16)
    for epoch in range(2):
        model.train()
        for images, target in train:
            optimizer.zero_grad()
            criterion(model(images), target).backward()
            optimizer.step()
        print(validate(model, val, criterion))


if __name__ == "__main__":
    main()
