import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(20, 32)
        self.fc2 = nn.Linear(32, 5)

    def forward(self, x):
        x = F.dropout(F.relu(self.fc1(x)), p=0.5, training=self.training)
        return self.fc2(x)


def train(model, loader, optimizer):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()


def test(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in loader:
            correct += model(data).argmax(1).eq(target).sum().item()
    return correct / len(loader.dataset)


def main():
    torch.manual_seed(3)
    x, y = torch.randn(128, 20), torch.randint(0, 5, (128,))
    train_loader = DataLoader(TensorDataset(x[:96], y[:96]), batch_size=16, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[96:], y[96:]), batch_size=16)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    print("before training:", test(model, test_loader))
    for epoch in range(3):
        train(model, train_loader, optimizer)
        print(epoch, test(model, test_loader))


if __name__ == "__main__":
    main()
