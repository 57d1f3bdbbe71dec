"""The model of the last epoch is tested; nothing is chosen."""
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(8, 16)
        self.fc2 = nn.Linear(16, 4)

    def forward(self, x):
        return F.log_softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


def train(model, train_loader, optimizer):
    model.train()
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()


def test(model, test_loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for data, target in test_loader:
            correct += model(data).argmax(dim=1).eq(target).sum().item()
    print(f"accuracy {correct}/{len(test_loader.dataset)}")


def main():
    train_loader = DataLoader(TensorDataset(torch.randn(80, 8), torch.randint(0, 4, (80,))), 16, True)
    test_loader = DataLoader(TensorDataset(torch.randn(40, 8), torch.randint(0, 4, (40,))), 16)
    model = Net()
    optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
    for epoch in range(3):
        train(model, train_loader, optimizer)
        test(model, test_loader)


if __name__ == "__main__":
    main()
