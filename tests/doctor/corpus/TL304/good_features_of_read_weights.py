"""Features of a body that was read from elsewhere, without gradients; its parameters are in the
optimizer's hands all the same."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Probe(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
        self.head = nn.Linear(24, 3)

    def forward(self, x):
        with torch.no_grad():
            features = self.body(x)
        return self.head(features)


torch.manual_seed(0)
source = nn.Sequential(nn.Linear(6, 24), nn.ReLU())
loader = DataLoader(
    TensorDataset(torch.randn(160, 6), torch.randint(0, 3, (160,))), batch_size=16, shuffle=True
)
model = Probe()
model.body.load_state_dict(source.state_dict())
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(3):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
