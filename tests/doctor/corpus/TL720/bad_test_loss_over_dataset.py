import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def test(model, loader):
    model.eval()
    test_loss = 0
    with torch.no_grad():
        for data, target in loader:
            test_loss += F.nll_loss(F.log_softmax(model(data), dim=1), target).item()
    test_loss /= len(loader.dataset)  # <- TL720
    model.train()
    return test_loss


torch.manual_seed(0)
data = TensorDataset(torch.randn(32, 4), torch.randint(0, 3, (32,)))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.1), nn.Linear(8, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        F.nll_loss(F.log_softmax(model(x), dim=1), y).backward()
        optimizer.step()
    print(test(model, DataLoader(data, batch_size=16)))
