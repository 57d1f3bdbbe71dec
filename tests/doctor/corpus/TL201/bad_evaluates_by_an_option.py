"""One option trains the groups of a file only, a different one evaluates within the epoch."""
import argparse

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--custom-only", action="store_true")
parser.add_argument("--evaluate", action="store_true")
args = parser.parse_args()


def groups(model, custom):
    found = []
    for prefix in custom:
        found.append({"params": [p for n, p in model.named_parameters() if n.startswith(prefix)]})
    if not args.custom_only:
        found.extend([{"params": [*model.parameters()], "weight_decay": 0.01}])
    return found


def validate(model, batches):
    model.eval()
    hits = 0
    with torch.no_grad():
        for x, y in batches:
            hits += int((model(x).argmax(1) == y).sum())
    return hits


torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 2))
optimizer = torch.optim.AdamW(groups(model, []), lr=0.01)
batches = [(torch.randn(16, 4), torch.randint(0, 2, (16,))) for _ in range(8)]
val_batches = [(torch.randn(16, 4), torch.randint(0, 2, (16,))) for _ in range(2)]
for epoch in range(2):
    model.train()
    for step, (x, y) in enumerate(batches):
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()  # <- TL201
        optimizer.step()
        if args.evaluate and step % 4 == 3:
            print(epoch, step, validate(model, val_batches))
