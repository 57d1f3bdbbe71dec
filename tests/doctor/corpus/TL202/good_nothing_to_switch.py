"""No dropout, no batch norm: nothing would change in eval mode."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x):
        q, k, v = self.qkv(self.norm(x)).chunk(3, dim=-1)
        return x + F.scaled_dot_product_attention(q, k, v)


class Model(nn.Module):
    def __init__(self, dim=16, depth=2, classes=4):
        super().__init__()
        self.blocks = nn.ModuleList([Attention(dim) for _ in range(depth)])
        self.head = nn.Linear(dim, classes)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.head(x.mean(dim=1))


def main():
    torch.manual_seed(0)
    x, y = torch.randn(96, 5, 16), torch.randint(0, 4, (96,))
    train_loader = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
    val_loader = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for epoch in range(2):
        for xb, yb in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(xb), yb)
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            correct = sum((model(xb).argmax(1) == yb).sum().item() for xb, yb in val_loader)
        print(f"epoch {epoch}: {correct / len(val_loader.dataset):.3f}")


if __name__ == "__main__":
    main()
