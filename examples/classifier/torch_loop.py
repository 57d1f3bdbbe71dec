"""A convolutional classifier by hand: accumulation, bf16, clipping and a warm-up."""

import torch
from data import textures
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR, SequentialLR
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, ACCUMULATE = 8, 2

torch.manual_seed(0)
train = DataLoader(TensorDataset(*textures(512, seed=0)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*textures(256, seed=1)), batch_size=128)
model = nn.Sequential(
    nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1),
    nn.Flatten(), nn.Dropout(0.1), nn.Linear(32, 4),
)  # fmt: skip
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
updates = EPOCHS * len(train) // ACCUMULATE
warmup = updates // 8
scheduler = SequentialLR(
    optimizer,
    [
        LinearLR(optimizer, start_factor=0.01, total_iters=warmup),
        CosineAnnealingLR(optimizer, T_max=updates - warmup),
    ],
    milestones=[warmup],
)

for _ in range(EPOCHS):
    model.train()
    for i, (images, labels) in enumerate(train):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        (loss / ACCUMULATE).backward()
        if (i + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
            scheduler.step()
    model.eval()
    total, right, samples = 0.0, 0, 0
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        for images, labels in val:
            logits = model(images)
            total += criterion(logits, labels).item() * len(labels)
            right += (logits.argmax(dim=1) == labels).sum().item()
            samples += len(labels)

print(f"val_loss {total / samples:.4f}  val_accuracy {right / samples:.4f}")
