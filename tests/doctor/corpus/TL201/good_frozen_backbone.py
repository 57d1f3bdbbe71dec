"""The backbone stays frozen and in eval mode; only the head is trained."""

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, num_classes):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1)
        )
        self.head = nn.Sequential(nn.Flatten(), nn.Dropout(0.2), nn.Linear(8, num_classes))

    def forward(self, images):
        return self.head(self.backbone(images))


def train_one_epoch(model, criterion, optimizer, loader):
    model.train()
    model.backbone.eval()  # its statistics are ImageNet's: keep them
    for images, labels in loader:
        loss = criterion(model(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


@torch.inference_mode()
def evaluate(model, loader):
    model.eval()
    correct = sum((model(images).argmax(1) == labels).sum().item() for images, labels in loader)
    return correct / len(loader.dataset)


torch.manual_seed(0)
images, labels = torch.randn(64, 3, 8, 8), torch.randint(0, 4, (64,))
train_loader = DataLoader(TensorDataset(images[:48], labels[:48]), batch_size=16, shuffle=True)
val_loader = DataLoader(TensorDataset(images[48:], labels[48:]), batch_size=16)
model = Classifier(num_classes=4)
for parameter in model.backbone.parameters():
    parameter.requires_grad = False
optimizer = torch.optim.Adam(model.head.parameters(), lr=1e-3)
criterion = nn.CrossEntropyLoss()
for epoch in range(3):
    train_one_epoch(model, criterion, optimizer, train_loader)
    print(f"epoch {epoch}: accuracy {evaluate(model, val_loader):.3f}")
