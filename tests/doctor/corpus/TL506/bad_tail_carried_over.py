import torch
import torch.nn.functional as F
from torch import nn, optim


def train(model, loader, epochs=2, accumulation_steps=3):
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(epochs):
        for batch_idx, (features, target) in enumerate(loader):
            loss = F.mse_loss(model(features), target)
            loss = loss / accumulation_steps
            loss.backward()
            if (batch_idx + 1) % accumulation_steps == 0:
                optimizer.step()  # <- TL506
                optimizer.zero_grad()
        print(epoch, loss.item())


def main():
    torch.manual_seed(0)
    features = torch.randn(64, 4)
    dataset = torch.utils.data.TensorDataset(features, features.sum(1, keepdim=True))
    loader = torch.utils.data.DataLoader(dataset, batch_size=8, shuffle=True, drop_last=True)
    train(nn.Linear(4, 1), loader)


if __name__ == "__main__":
    main()
