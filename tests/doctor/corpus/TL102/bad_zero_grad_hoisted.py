import torch
import torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset
from torch.optim import Adam


def train(model, train_loader, criterion, optimizer, device):
    model.train()
    running_loss, total = 0.0, 0
    optimizer.zero_grad()
    for inputs, labels in train_loader:
        inputs, labels = inputs.to(device), labels.to(device)
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()  # <- TL102
        running_loss += loss.item() * inputs.size(0)
        total += inputs.size(0)
    return running_loss / total


if __name__ == "__main__":
    torch.manual_seed(42)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    X, y = torch.randn(80, 7), torch.randint(0, 4, (80,))
    train_loader = DataLoader(TensorDataset(X, y), batch_size=16, shuffle=True)
    model = nn.Sequential(nn.Linear(7, 20), nn.ReLU(), nn.Linear(20, 4)).to(device)
    criterion = nn.CrossEntropyLoss()
    optimizer = Adam(model.parameters(), lr=1e-3)
    for epoch in range(3):
        print(f"Epoch {epoch + 1}: {train(model, train_loader, criterion, optimizer, device):.4f}")
