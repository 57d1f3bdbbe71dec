"""Several noisy views of one batch, whose losses are added on purpose."""
import torch
from torch import nn


def noise(x):
    return x + 0.1 * torch.randn_like(x)


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4))
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
data = iter(torch.randn(8, 16, 4))
for step in range(8):
    x = next(data)
    opt.zero_grad()
    for view in range(3):
        loss = nn.functional.mse_loss(model(noise(x)), x)
        loss.backward()
    opt.step()
print(loss.item())
