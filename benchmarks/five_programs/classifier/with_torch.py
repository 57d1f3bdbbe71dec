import torch
from shared import ConvNet, textures
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, ACCUMULATE = 8, 2

torch.manual_seed(0)
train = DataLoader(TensorDataset(*textures(512, seed=0)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*textures(256, seed=1)), batch_size=128)
model = ConvNet()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
scheduler = CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train) // ACCUMULATE)

for _ in range(EPOCHS):
    model.train()
    for i, (images, labels) in enumerate(train):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = criterion(model(images), labels)
        (loss / ACCUMULATE).backward()
        if (i + 1) % ACCUMULATE == 0:
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
            optimizer.step()
            optimizer.zero_grad()
            scheduler.step()
    model.eval()
    total, right = 0.0, 0
    with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
        for images, labels in val:
            logits = model(images)
            total += criterion(logits, labels).item() * len(labels)
            right += (logits.argmax(dim=1) == labels).sum().item()
    result = {"loss": total / len(val.dataset), "accuracy": right / len(val.dataset)}
