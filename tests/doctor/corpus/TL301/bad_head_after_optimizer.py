"""Transfer to other classes; the head is exchanged when the optimizer is already made."""

import torch
import torch.nn as nn
import torch.optim as optim
from torch.utils.data import DataLoader, TensorDataset


class ResidualNet(nn.Module):
    def __init__(self, num_classes=1000):
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.block = nn.Conv2d(8, 8, 3, padding=1)
        self.fc = nn.Linear(8, num_classes)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        x = x + torch.relu(self.block(x))
        return self.fc(x.mean(dim=(2, 3)))


def main():
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    images, labels = torch.randn(64, 3, 6, 6), torch.randint(0, 5, (64,))
    loader = DataLoader(TensorDataset(images, labels), batch_size=16, shuffle=True)

    model = ResidualNet().to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    model.fc = nn.Linear(model.fc.in_features, 5).to(device)  # <- TL301

    model.train()
    for epoch in range(2):
        for inputs, targets in loader:
            inputs, targets = inputs.to(device), targets.to(device)
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}: loss {loss.item():.4f}")


if __name__ == "__main__":
    main()
