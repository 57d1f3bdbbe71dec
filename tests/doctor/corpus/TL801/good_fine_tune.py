"""Weights from elsewhere are a start, not a resume."""
import io

import torch
from torch import nn, optim


def pretrained():
    buffer = io.BytesIO()
    torch.save({"epoch": 90, "state_dict": nn.Linear(6, 4).state_dict()}, buffer)
    buffer.seek(0)
    return buffer


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(6, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(torch.relu(self.backbone(x)))


def main():
    model = Classifier()
    checkpoint = torch.load(pretrained(), weights_only=True)
    model.backbone.load_state_dict(checkpoint["state_dict"])
    print(f"weights of epoch {checkpoint['epoch']}")
    optimizer = optim.SGD(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    x, y = torch.randn(32, 6), torch.randint(0, 2, (32,))
    for epoch in range(5):
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main()
