"""Two tasks on one encoder: its gradients add up over both losses on purpose."""

import torch
from torch import nn

torch.manual_seed(0)
torch.set_num_threads(1)
encoder, head_a, head_b = nn.Linear(4, 8), nn.Linear(8, 1), nn.Linear(8, 3)
opt_encoder = torch.optim.Adam(encoder.parameters(), lr=1e-3)
opt_a = torch.optim.Adam(head_a.parameters(), lr=1e-2)
opt_b = torch.optim.Adam(head_b.parameters(), lr=1e-2)
x, y, c = torch.randn(32, 4), torch.randn(32, 1), torch.randint(0, 3, (32,))

for i in range(10):
    for each in (opt_encoder, opt_a, opt_b):
        each.zero_grad()
    loss_a = nn.functional.mse_loss(head_a(encoder(x)), y)
    loss_a.backward()
    opt_a.step()
    loss_b = nn.functional.cross_entropy(head_b(encoder(x)), c)
    loss_b.backward()
    opt_b.step()
    opt_encoder.step()
    print(i, loss_a.item(), loss_b.item())
