import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, features=14, hidden=32, classes=3):
        super().__init__()
        self.hidden = nn.Linear(features, hidden)
        self.out = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.out(F.relu(self.hidden(x)))


def train(model, loader, epochs=2, lr=1e-3):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    loss_function = nn.CrossEntropyLoss()
    for epoch in range(epochs):
        running_loss = 0.0
        for x, y in loader:
            optimizer.zero_grad()
            y_pred = model.forward(x)  # <- TL205
            loss = loss_function(y_pred, y)
            loss.backward()
            optimizer.step()
            running_loss += loss.item() * len(x)
        print(f"epoch {epoch + 1}: loss {running_loss / len(loader.dataset):.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(96, 14), torch.randint(0, 3, (96,)))
    train(Classifier(), DataLoader(dataset, batch_size=16, shuffle=True))
