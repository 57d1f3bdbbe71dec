import argparse

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser(description="PyTorch toy training")
parser.add_argument("--lr", default=0.1, type=float, help="learning rate")
parser.add_argument("--epochs", default=5, type=int)
args = parser.parse_args()

torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(320, 12)
y = x[:, :4].argmax(dim=1)
trainloader = DataLoader(TensorDataset(x[:256], y[:256]), batch_size=32, shuffle=True)
testloader = DataLoader(TensorDataset(x[256:], y[256:]), batch_size=32, shuffle=False)

net = nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 4))
criterion = nn.CrossEntropyLoss()
optimizer = optim.SGD(net.parameters(), lr=args.lr, momentum=0.9, weight_decay=5e-4)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=args.epochs)


def train(epoch):
    print("\nEpoch: %d" % epoch)
    net.train()
    train_loss = 0
    for batch_idx, (inputs, targets) in enumerate(trainloader):
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        scheduler.step()  # <- TL602
        train_loss += loss.item()
    print("Loss: %.3f" % (train_loss / len(trainloader)))


def test(epoch):
    net.eval()
    correct = 0
    total = 0
    with torch.no_grad():
        for inputs, targets in testloader:
            outputs = net(inputs)
            total += targets.size(0)
            correct += outputs.argmax(dim=1).eq(targets).sum().item()
    print("Acc: %.3f%%" % (100.0 * correct / total))


for epoch in range(args.epochs):
    train(epoch)
    test(epoch)
