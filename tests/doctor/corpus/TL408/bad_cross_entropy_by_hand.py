"""A cross-entropy that is written out: one-hot targets times the logarithm of probabilities."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(5, 12), nn.Linear(12, 4)

    def forward(self, x):
        return F.softmax(self.fc2(F.relu(self.fc1(x))), dim=0)  # <- TL408


def train(model, loader, optimizer):
    for x, y in loader:
        onehot = F.one_hot(y, 4).float()
        loss = -(onehot * torch.log(model(x) + 1e-8)).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


if __name__ == "__main__":
    torch.manual_seed(0)
    data = TensorDataset(torch.randn(60, 5), torch.randint(0, 4, (60,)))
    model = Classifier()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(2):
        print(epoch, train(model, DataLoader(data, batch_size=12, shuffle=True), optimizer))
