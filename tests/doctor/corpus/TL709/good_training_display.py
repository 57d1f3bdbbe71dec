"""The running mean that a progress line shows of training; validation counts its samples."""
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

train_loader = DataLoader(TensorDataset(torch.randn(250, 3), torch.randn(250, 1)), 32, shuffle=True)
test_loader = DataLoader(TensorDataset(torch.randn(90, 3), torch.randn(90, 1)), batch_size=32)
model = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-3)
criterion = nn.L1Loss()
total_criterion = nn.L1Loss(reduction="sum")

for epoch in range(1, 3):
    model.train()
    running_loss = 0.0
    for data, target in train_loader:
        optimizer.zero_grad()
        loss = criterion(model(data), target)
        loss.backward()
        optimizer.step()
        running_loss += loss.item()
    print(f"epoch {epoch} train {running_loss / len(train_loader):.4f}")

    model.eval()
    test_loss = 0.0
    with torch.no_grad():
        for data, target in test_loader:
            test_loss += total_criterion(model(data), target).item()
    test_loss /= len(test_loader.dataset)
    print(f"epoch {epoch} test {test_loss:.4f}")
