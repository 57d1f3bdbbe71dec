"""A distribution of tags is made of logits, and its probabilities go into the loss for logits."""
import torch
import torch.distributions as D
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
net = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 5))
optimizer = torch.optim.Adam(net.parameters(), lr=1e-2)
x = torch.randn(120, 6)
tags = (x @ torch.randn(6, 5) > 0).float()
for epoch in range(3):
    for rows in torch.randperm(len(x)).split(24):
        found = D.Bernoulli(logits=net(x[rows]))
        loss = F.binary_cross_entropy_with_logits(found.probs, tags[rows])  # <- TL402
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, loss.item())
