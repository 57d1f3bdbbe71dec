"""The sum of means over the samples is multiplied by the batch size where it is printed."""
import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
args = parser.parse_args()

torch.manual_seed(0)
data = TensorDataset(torch.randn(64, 4), torch.randint(0, 3, (64,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
test_data = TensorDataset(torch.randn(48, 4), torch.randint(0, 3, (48,)))
test_loader = DataLoader(test_data, batch_size=args.batch_size)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
criterion = nn.CrossEntropyLoss()


def test():
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for x, y in test_loader:
            test_loss += criterion(model(x), y).item()
    test_loss /= len(test_loader.dataset)
    print(f"test loss {test_loss * args.batch_size:.4f}")


for epoch in range(2):
    model.train()
    for x, y in loader:
        optimizer.zero_grad()
        criterion(model(x), y).backward()
        optimizer.step()
    test()
