"""A small GPT by hand: no weight decay on norms, a warm-up, clipping, loss per token."""

import math

import torch
from data import windows
from model import GPT
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader

UPDATES, WARMUP = 80, 8

torch.manual_seed(0)
train = DataLoader(windows(700, seed=0), batch_size=32, shuffle=True, drop_last=True)
val = DataLoader(windows(50, seed=1), batch_size=32)
model = GPT()
matrices = [p for p in model.parameters() if p.ndim >= 2]
vectors = [p for p in model.parameters() if p.ndim < 2]
optimizer = torch.optim.AdamW(
    [{"params": matrices, "weight_decay": 0.1}, {"params": vectors, "weight_decay": 0.0}],
    lr=1e-2,
    fused=True,
)
scheduler = SequentialLR(
    optimizer,
    [
        LinearLR(optimizer, start_factor=0.01, total_iters=WARMUP),
        CosineAnnealingLR(optimizer, T_max=UPDATES - WARMUP),
    ],
    milestones=[WARMUP],
)


def next_token_loss(tokens: Tensor) -> Tensor:
    logits = model(tokens[:, :-1])
    return cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())


update = 0
model.train()
while update < UPDATES:
    for tokens in train:
        optimizer.zero_grad()
        next_token_loss(tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        update += 1
        if update == UPDATES:
            break

model.eval()
with torch.inference_mode():
    losses = [next_token_loss(tokens).item() * len(tokens) for tokens in val]
loss = sum(losses) / len(val.dataset)
print(f"val_loss {loss:.4f}  perplexity {math.exp(loss):.2f}")
