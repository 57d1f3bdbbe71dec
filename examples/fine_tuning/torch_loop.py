"""Fine-tuning by hand: the head first, the backbone later, each layer slower than the next, and no
weight decay on norms and biases."""

import torch
from data import pretrained, textures
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

EPOCHS, UNFREEZE, LR, LAYER_DECAY = 6, 2, 1e-2, 0.3

torch.manual_seed(0)
train = DataLoader(TensorDataset(*textures(256, seed=0)), batch_size=32, shuffle=True)
val = DataLoader(TensorDataset(*textures(256, seed=1)), batch_size=128)
model = pretrained()
criterion = nn.CrossEntropyLoss()
layers = [model.stem, model.body, model.head]
groups = []
for depth, layer in enumerate(layers):
    lr = LR * LAYER_DECAY ** (len(layers) - 1 - depth)
    matrices = [p for p in layer.parameters() if p.ndim >= 2]
    vectors = [p for p in layer.parameters() if p.ndim < 2]
    groups.append({"params": matrices, "lr": lr, "weight_decay": 0.05})
    groups.append({"params": vectors, "lr": lr, "weight_decay": 0.0})
optimizer = torch.optim.AdamW(groups, fused=True)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS * len(train))

for epoch in range(EPOCHS):
    model.stem.requires_grad_(epoch >= UNFREEZE)
    model.body.requires_grad_(epoch >= UNFREEZE)
    model.train()
    for images, labels in train:
        optimizer.zero_grad()
        criterion(model(images), labels).backward()
        optimizer.step()
        scheduler.step()
    model.eval()
    right = 0
    with torch.inference_mode():
        for images, labels in val:
            right += (model(images).argmax(dim=1) == labels).sum().item()

print(f"val_accuracy {right / len(val.dataset):.4f}")
