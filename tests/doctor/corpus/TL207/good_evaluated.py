import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

torch.manual_seed(0)
inputs, targets = torch.randn(256, 16), torch.randn(256, 1)
frozen = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.5)).eval()
head = nn.Linear(16, 1)
optimizer = torch.optim.SGD([*frozen.parameters(), *head.parameters()], lr=0.01)
for epoch in range(3):
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        hidden = checkpoint(frozen, inputs[rows], use_reentrant=False, preserve_rng_state=False)
        loss = nn.functional.mse_loss(head(hidden), targets[rows])
        loss.backward()
        optimizer.step()
