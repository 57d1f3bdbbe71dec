import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk, self.mean, self.spread = nn.Linear(5, 8), nn.Linear(8, 1), nn.Linear(8, 1)

    def forward(self, x, y):
        hidden = torch.relu(self.trunk(x))
        return {
            "mean": F.mse_loss(self.mean(hidden), y),
            "spread": F.mse_loss(self.spread(hidden), y.abs()),
        }


torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(24, 5), torch.randn(24, 1)), 8, shuffle=True)
model = Heads()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        losses = model(x, y)
        torch.autograd.backward([*losses.values()])
        optimizer.step()
