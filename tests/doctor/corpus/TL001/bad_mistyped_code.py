import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 3))
opt = torch.optim.Adam(net.parameters(), lr=1e-2)
data, labels = torch.randn(96, 8), torch.randint(0, 3, (96,))

for step in range(10):
    opt.zero_grad()
    # trueloop: ignore[TL4O1]  # <- TL001
    loss = F.cross_entropy(net(data), labels)
    loss.backward()
    opt.step()
