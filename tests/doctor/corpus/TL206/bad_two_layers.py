import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self, in_features, hidden, out_features):
        super(Net, self).__init__()
        self.fc1 = nn.Linear(in_features, hidden)
        self.fc2 = nn.Linear(hidden, out_features)

    def forward(self, x):
        x = F.relu(self.fc1(x))
        x = F.dropout(x, p=0.5)  # <- TL206
        return F.log_softmax(self.fc2(x), dim=1)


def train(model, loader, optimizer):
    model.train()
    for data, target in loader:
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
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
    torch.manual_seed(0)
    x, y = torch.randn(128, 10), torch.randint(0, 3, (128,))
    train_loader = DataLoader(TensorDataset(x[:96], y[:96]), batch_size=16, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[96:], y[96:]), batch_size=16)
    model = Net(10, 64, 3)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        train(model, train_loader, optimizer)
        print(f"epoch {epoch}: accuracy {test(model, test_loader):.3f}")


if __name__ == "__main__":
    main()
