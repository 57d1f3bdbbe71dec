"""A gradient scaler on a loss that is a sum over the batch: the first scale is too large.

float16 under autocast. The scaler starts at 65536 and halves when a gradient has overflowed, which
skips that update.
"""

import json
import sys

import torch
from torch import nn

seed = int(sys.argv[1]) if len(sys.argv) > 1 else 0
torch.manual_seed(seed)
x = torch.randn(1024, 16)
y = (x @ torch.randn(16, 4)).argmax(1)
model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4))
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3)
scaler = torch.amp.GradScaler("cpu")
criterion = nn.CrossEntropyLoss(reduction="sum")
scales, skipped, losses = [], [], []
for _ in range(200):
    chosen = torch.randint(0, len(x), (64,))
    with torch.autocast("cpu", dtype=torch.float16):
        output = model(x[chosen])
        loss = criterion(output.float(), y[chosen])
    optimizer.zero_grad()
    scaler.scale(loss).backward()
    scale = scaler.get_scale()
    scaler.step(optimizer)
    scaler.update()
    scales.append(scale)
    skipped.append(scaler.get_scale() < scale)
    losses.append(nn.functional.cross_entropy(output.float(), y[chosen]).item())
print(
    json.dumps(
        {
            "skipped": sum(skipped),
            "skipped_early": sum(skipped[:20]),
            "scale": scales[-1],
            "last_loss": sum(losses[-20:]) / 20,
            "scales": scales,
        }
    )
)
