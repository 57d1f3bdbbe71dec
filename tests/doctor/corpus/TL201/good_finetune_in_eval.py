# Fine-tunes with every batch norm held at its pretrained statistics: the whole run is in eval mode.
import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


def conv_bn(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.BatchNorm2d(o), nn.ReLU())


def accuracy(net, loader):
    right = 0
    with torch.no_grad():
        for inputs, labels in loader:
            right += (net(inputs).argmax(1) == labels).sum().item()
    return right / len(loader.dataset)


def main():
    torch.manual_seed(0)
    inputs, labels = torch.randn(80, 3, 6, 6), torch.randint(0, 3, (80,))
    train_loader = DataLoader(TensorDataset(inputs[:64], labels[:64]), batch_size=16, shuffle=True)
    val_loader = DataLoader(TensorDataset(inputs[64:], labels[64:]), batch_size=16)

    net = nn.Sequential(conv_bn(3, 8), conv_bn(8, 8), nn.Flatten(), nn.Linear(8 * 36, 3))
    net.eval()  # small batches: do not touch the running statistics
    optimizer = optim.SGD(net.parameters(), lr=1e-3, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    for epoch in range(3):
        for inputs, labels in train_loader:
            optimizer.zero_grad()
            loss = criterion(net(inputs), labels)
            loss.backward()
            optimizer.step()
        print(epoch, accuracy(net, val_loader))


main()
