import torch
from torch import nn
from torch.utils.checkpoint import checkpoint


class Block(nn.Module):
    def __init__(self, width, p):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Dropout(p))

    def forward(self, x):
        return x + checkpoint(self.inner, x, use_reentrant=False, preserve_rng_state=False)


torch.manual_seed(0)
inputs, targets = torch.randn(256, 16), torch.randn(256, 1)
model = nn.Sequential(Block(16, 0.0), Block(16, 0.0), nn.Linear(16, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
for epoch in range(3):
    model.train()
    for rows in torch.randperm(256).split(32):
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(inputs[rows]), targets[rows])
        loss.backward()
        optimizer.step()
