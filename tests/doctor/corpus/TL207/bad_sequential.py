import torch
from torch import nn
from torch.utils.checkpoint import checkpoint_sequential

torch.manual_seed(0)
inputs, targets = torch.randn(256, 16), torch.randn(256, 1)
layers = [nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Dropout(0.2)) for _ in range(4)]
body, head = nn.Sequential(*layers), nn.Linear(16, 1)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.01)
for epoch in range(3):
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        hidden = checkpoint_sequential(body, 2, inputs[rows], False, preserve_rng_state=False)  # <- TL207
        loss = nn.functional.mse_loss(head(hidden), targets[rows])
        loss.backward()
        optimizer.step()
