import torch
import torch.nn as nn
import torch.nn.functional as F


class Pairs(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.left, self.right = nn.Linear(3, width), nn.Linear(3, width)

    def forward(self, a, b):
        joined = torch.cat([self.left(a), self.right(b)], dim=-1)
        scorer = nn.Bilinear(joined.size(-1), 3, 1)  # <- TL308
        return scorer(joined, a).squeeze(-1)


torch.manual_seed(0)
net = Pairs(5)
optim = torch.optim.RMSprop(net.parameters(), lr=1e-3)
for step in range(6):
    a, b, same = torch.randn(4, 3), torch.randn(4, 3), torch.rand(4).round()
    optim.zero_grad()
    F.binary_cross_entropy_with_logits(net(a, b), same).backward()
    optim.step()
