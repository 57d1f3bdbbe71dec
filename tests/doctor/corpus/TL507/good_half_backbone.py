"""A frozen backbone in half precision under a head that is trained in float32."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(8, 16).bfloat16().requires_grad_(False)
        self.head = nn.Linear(16, 2)

    def forward(self, x):
        return self.head(torch.relu(self.backbone(x.bfloat16())).float())


torch.manual_seed(0)
torch.set_num_threads(1)
net = Net()
optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=1e-5)
x, y = torch.randn(64, 8), torch.randint(0, 2, (64,))
for step in range(10):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(net(x), y)
    loss.backward()
    optimizer.step()
    print(step, loss.item())
