import torch
from shared import GPT, next_token_loss, windows
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader

UPDATES = 80

torch.manual_seed(0)
train = DataLoader(windows(500, seed=0), batch_size=32, shuffle=True)
val = DataLoader(windows(50, seed=1), batch_size=32)
model = GPT()
matrices = [p for p in model.parameters() if p.ndim >= 2]
vectors = [p for p in model.parameters() if p.ndim < 2]
groups = [
    {"params": matrices, "weight_decay": 0.1},
    {"params": vectors, "weight_decay": 0.0},
]
optimizer = torch.optim.AdamW(groups, lr=1e-2, fused=True)
scheduler = CosineAnnealingLR(optimizer, T_max=UPDATES)

model.train()
update = 0
while update < UPDATES:
    for tokens in train:
        optimizer.zero_grad()
        next_token_loss(model(tokens[:, :-1]), tokens).backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
        update += 1
        if update == UPDATES:
            break

model.eval()
total = 0.0
with torch.inference_mode():
    for tokens in val:
        total += next_token_loss(model(tokens[:, :-1]), tokens).item() * len(tokens)
result = {"loss": total / len(val.dataset)}
