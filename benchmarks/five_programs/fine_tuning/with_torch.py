import torch
from shared import pretrained, textures
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS = 5

torch.manual_seed(0)
train = DataLoader(TensorDataset(*textures(256, seed=0)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*textures(256, seed=1)), batch_size=128)
model = pretrained()
model.stem.requires_grad_(False)
model.head.reset_parameters()
criterion = nn.CrossEntropyLoss()
groups = [
    {"params": model.body.parameters(), "lr": 1e-3},
    {"params": model.head.parameters(), "lr": 1e-2},
]
optimizer = torch.optim.AdamW(groups, weight_decay=0.01)

for _ in range(EPOCHS):
    model.train()
    model.stem.eval()
    for images, labels in train:
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
    model.eval()
    total, right = 0.0, 0
    with torch.inference_mode():
        for images, labels in val:
            logits = model(images)
            total += criterion(logits, labels).item() * len(labels)
            right += (logits.argmax(dim=1) == labels).sum().item()
    result = {"loss": total / len(val.dataset), "accuracy": right / len(val.dataset)}
