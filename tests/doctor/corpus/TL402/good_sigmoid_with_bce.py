import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class LogisticRegression(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, 1)

    def forward(self, x):
        return torch.sigmoid(self.linear(x))


torch.manual_seed(0)
torch.set_num_threads(1)
x = torch.randn(256, 5)
y = (x @ torch.tensor([1.0, -2.0, 0.5, 0.0, 1.0]) > 0).float().unsqueeze(1)
loader = DataLoader(TensorDataset(x, y), batch_size=32, shuffle=True)

model = LogisticRegression(5)
criterion = nn.BCELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)

for epoch in range(4):
    for inputs, targets in loader:
        optimizer.zero_grad()
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
