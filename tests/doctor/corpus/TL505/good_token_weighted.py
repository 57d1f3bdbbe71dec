"""Every micro-batch counts by its tokens, as if all had stood in one batch."""
import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
model = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)


def micro_batches(n):
    for _ in range(n):
        tokens = torch.randint(0, 20, (4, 7))
        labels = tokens.roll(-1, 1)
        labels[:, -torch.randint(1, 4, ()).item():] = -100
        yield tokens, labels


def train(updates=5, grad_acc_steps=3):
    for _ in range(updates):
        window = list(micro_batches(grad_acc_steps))
        n_tokens = sum((labels != -100).sum() for _, labels in window)
        for tokens, labels in window:
            logits = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum")
            (loss / n_tokens).backward()
        optimizer.step()
        optimizer.zero_grad()


train()
