"""Counted in updates, not epochs: an endless stream, evaluation every so often, two heads."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def infinite(loader):
    while True:
        yield from loader


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(9, 20)
        self.norm = nn.LayerNorm(20)
        self.drop = nn.Dropout(0.2)
        self.kind = nn.Linear(20, 3)
        self.size = nn.Linear(20, 1)

    def forward(self, x):
        h = self.drop(F.silu(self.norm(self.trunk(x))))
        return self.kind(h), self.size(h).squeeze(1)


@torch.no_grad()
def estimate(model, loader):
    model.eval()
    kind_loss = size_loss = 0.0
    n = 0
    for x, kind, size in loader:
        kind_logits, size_hat = model(x)
        kind_loss += F.cross_entropy(kind_logits, kind, reduction="sum").item()
        size_loss += F.l1_loss(size_hat, size, reduction="sum").item()
        n += len(x)
    model.train()
    return kind_loss / n, size_loss / n


max_iters, eval_interval, warmup_iters, base_lr = 24, 8, 4, 0.02
torch.manual_seed(1337)
x = torch.randn(132, 9)
kind = x[:, :3].argmax(dim=1)
size = x[:, 3:6].abs().sum(dim=1)
train_loader = DataLoader(
    TensorDataset(x[:100], kind[:100], size[:100]), batch_size=20, shuffle=True
)
val_loader = DataLoader(TensorDataset(x[100:], kind[100:], size[100:]), batch_size=16)
model = MultiTask()
optimizer = torch.optim.AdamW(model.parameters(), lr=base_lr, betas=(0.9, 0.95))


def get_lr(it):
    if it < warmup_iters:
        return base_lr * (it + 1) / warmup_iters
    return base_lr * (1 - (it - warmup_iters) / (max_iters - warmup_iters))


stream = infinite(train_loader)
model.train()
for it in range(max_iters):
    lr = get_lr(it)
    for group in optimizer.param_groups:
        group["lr"] = lr

    if it % eval_interval == 0:
        kind_val, size_val = estimate(model, val_loader)
        print(f"iter {it}: kind {kind_val:.4f} size {size_val:.4f}")

    xb, kind_b, size_b = next(stream)
    kind_logits, size_hat = model(xb)
    kind_loss = F.cross_entropy(kind_logits, kind_b)
    size_loss = F.mse_loss(size_hat, size_b)
    loss = kind_loss + 0.5 * size_loss
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    grad_norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    if it % 6 == 0:
        print(f"iter {it}: loss {loss.item():.4f}, norm {grad_norm.item():.3f}, lr {lr:.4f}")
