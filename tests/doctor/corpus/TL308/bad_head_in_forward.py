import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Linear(6, 8), nn.ReLU())

    def forward(self, x):
        x = self.features(x).flatten(1)
        head = nn.Linear(x.shape[1], 3)  # <- TL308
        return head(x)


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(24, 6), torch.randint(0, 3, (24,))), 8, shuffle=True)
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
