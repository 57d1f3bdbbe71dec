"""A folder of images by hand. What the augmentation draws depends on all that was drawn before: on
the number of workers, and on what a resumed run has skipped."""

import torch
from data import ImageFolder, make_folder
from torch import nn
from torch.utils.data import DataLoader

EPOCHS = 6

torch.manual_seed(0)
train = DataLoader(ImageFolder(make_folder(60, seed=0), augment=True), batch_size=16, shuffle=True)
val = DataLoader(ImageFolder(make_folder(40, seed=1)), batch_size=40)
model = nn.Sequential(
    nn.Conv2d(1, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 2),
)  # fmt: skip
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(model.parameters(), lr=2e-2)
scheduler = torch.optim.lr_scheduler.OneCycleLR(
    optimizer, max_lr=2e-2, total_steps=EPOCHS * len(train)
)

for _ in range(EPOCHS):
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
