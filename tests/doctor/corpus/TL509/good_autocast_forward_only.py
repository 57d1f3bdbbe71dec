import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 8)
        self.head = nn.Linear(8, 2)

    @torch.autocast("cpu", dtype=torch.bfloat16)
    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


torch.manual_seed(0)
net = Net()
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for x, y in [(torch.randn(8, 4), torch.randint(0, 2, (8,))) for _ in range(8)]:
    loss = nn.functional.cross_entropy(net(x).float(), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
