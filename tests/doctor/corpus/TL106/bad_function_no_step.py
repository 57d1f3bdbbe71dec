import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super(Net, self).__init__()
        self.conv1 = nn.Conv2d(1, 4, 3)
        self.fc = nn.Linear(144, 10)

    def forward(self, x):
        x = F.relu(self.conv1(x))
        return self.fc(x.view(-1, 144))


def train(model, train_loader, optimizer, epoch):
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        output = model(data)
        loss = F.cross_entropy(output, target)
        loss.backward()  # <- TL106
        if batch_idx % 2 == 0:
            print("Train Epoch: {} [{}]\tLoss: {:.6f}".format(epoch, batch_idx, loss.item()))


def main():
    torch.manual_seed(1)
    data = TensorDataset(torch.randn(48, 1, 8, 8), torch.randint(0, 10, (48,)))
    train_loader = DataLoader(data, batch_size=12, shuffle=True)
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    for epoch in range(1, 3):
        train(model, train_loader, optimizer, epoch)


if __name__ == "__main__":
    main()
