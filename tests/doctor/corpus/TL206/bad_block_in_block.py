import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class FeedForward(nn.Module):
    def __init__(self, dim, p):
        super().__init__()
        self.up = nn.Linear(dim, 2 * dim)
        self.down = nn.Linear(2 * dim, dim)
        self.p = p

    def forward(self, x):
        hidden = nn.functional.gelu(self.up(x))
        return self.down(nn.functional.dropout(hidden, self.p))  # <- TL206


class Block(nn.Module):
    def __init__(self, dim, p=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(dim)
        self.mlp = FeedForward(dim, p)

    def forward(self, x):
        return x + self.mlp(self.norm(x))


torch.manual_seed(0)
x = torch.randn(64, 12)
y = x.roll(1, dims=1)
loader = DataLoader(TensorDataset(x, y), batch_size=16, shuffle=True)
model = nn.Sequential(Block(12), Block(12), nn.Linear(12, 12))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model.train()
for epoch in range(3):
    for inputs, targets in loader:
        loss = nn.functional.l1_loss(model(inputs), targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"epoch {epoch} loss {loss.item():.4f}")
