import torch
from torch import nn


def train(model, inputs, targets, epochs=3):
    criterion = nn.MSELoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(epochs):
        optimizer.zero_grad()  # trueloop: ignore[TL101]  # <- TL001
        loss = criterion(model(inputs), targets)
        loss.backward()
        optimizer.step()
        print(f"epoch {epoch}: {loss.item():.4f}")


if __name__ == "__main__":
    torch.manual_seed(0)
    x = torch.randn(64, 4)
    train(nn.Linear(4, 1), x, x.sum(1, keepdim=True))
