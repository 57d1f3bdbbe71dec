"""The loop by hand, right in every line: compare trueloop_loop.py beside it."""

import torch
from data import spiral
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 16

torch.manual_seed(0)
train = DataLoader(TensorDataset(*spiral(2000, seed=0)), batch_size=64, shuffle=True)
val = DataLoader(TensorDataset(*spiral(1000, seed=1)), batch_size=256)
model = nn.Sequential(
    nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 3)
)
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=3e-3, fused=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train))

for _ in range(EPOCHS):
    model.train()
    for inputs, targets in train:
        optimizer.zero_grad(set_to_none=True)
        loss = criterion(model(inputs), targets)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        scheduler.step()
    model.eval()
    total, right, samples = 0.0, 0, 0
    with torch.inference_mode():
        for inputs, targets in val:
            logits = model(inputs)
            total += criterion(logits, targets).item() * len(targets)
            right += (logits.argmax(dim=1) == targets).sum().item()
            samples += len(targets)

print(f"val_loss {total / samples:.4f}  val_accuracy {right / samples:.4f}")
