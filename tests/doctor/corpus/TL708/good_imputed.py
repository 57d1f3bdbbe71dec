import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Imputing(nn.Module):
    def __init__(self):
        super().__init__()
        self.fill = nn.Parameter(torch.zeros(5))
        self.fc = nn.Linear(10, 1)

    def forward(self, x):
        missing = x.isnan()
        return self.fc(torch.cat([torch.where(missing, self.fill, x), missing.float()], dim=1))


torch.manual_seed(0)
table = torch.randn(60, 5)
table[torch.rand(60, 5) < 0.2] = float("nan")
loader = DataLoader(TensorDataset(table, torch.randn(60, 1)), batch_size=10, shuffle=True)
model = Imputing()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for inputs, targets in loader:
    optimizer.zero_grad()
    nn.functional.mse_loss(model(inputs), targets).backward()
    optimizer.step()
