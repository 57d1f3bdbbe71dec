import math

import torch
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
loader = torch.utils.data.DataLoader(
    torch.utils.data.TensorDataset(torch.randn(40, 4), torch.randn(40, 1)), batch_size=8, shuffle=True
)
norms = []
for epoch in range(2):
    for x, y in loader:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()
        # an infinite limit measures and changes nothing
        norms.append(nn.utils.clip_grad_norm_(model.parameters(), math.inf).item())
print("mean gradient norm", sum(norms) / len(norms))
