import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Average:
    def __init__(self):
        self.total = 0.0

    def update(self, loss):
        self.total += loss.item()

    def over(self, data):
        return self.total / len(data)  # <- TL720


def validate(network, batches, criterion):
    network.eval()
    average = Average()
    with torch.no_grad():
        for x, y in batches:
            average.update(criterion(network(x), y))
    network.train()
    return average.over(batches.dataset)


torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 4), torch.randn(32, 1))
network = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 1))
optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in DataLoader(data, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        nn.functional.mse_loss(network(x), y).backward()
        optimizer.step()
    print(validate(network, DataLoader(data, batch_size=16), nn.MSELoss()))
