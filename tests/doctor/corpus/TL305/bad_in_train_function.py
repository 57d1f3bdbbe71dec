import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(16, 32)
        self.fc2 = nn.Linear(32, 4)

    def forward(self, x):
        return self.fc2(F.relu(self.fc1(x)))


def train(model, train_loader, epoch, lr):
    optimizer = optim.Adam(model.parameters(), lr=lr)  # <- TL305
    model.train()
    for batch_idx, (data, target) in enumerate(train_loader):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(data), target)
        loss.backward()
        optimizer.step()
    print("Train Epoch: {} Loss: {:.6f}".format(epoch, loss.item()))


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 16), torch.randint(0, 4, (96,))
    train_loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
    model = Net()
    for epoch in range(1, 4):
        train(model, train_loader, epoch, lr=1e-3)


if __name__ == "__main__":
    main()
