"""Robust accuracy needs gradients at evaluation: those of the inputs."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def fgsm_attack(image, epsilon, data_grad):
    return torch.clamp(image + epsilon * data_grad.sign(), 0, 1)


def test(model, test_loader, epsilon):
    model.eval()
    correct = 0
    for data, target in test_loader:
        data.requires_grad = True
        output = model(data)
        loss = F.nll_loss(output, target)
        model.zero_grad()
        loss.backward()
        perturbed = fgsm_attack(data, epsilon, data.grad.data)
        with torch.no_grad():
            pred = model(perturbed).argmax(dim=1)
        correct += (pred == target).sum().item()
    return correct / len(test_loader.dataset)


def main():
    torch.manual_seed(0)
    x, y = torch.rand(96, 1, 6, 6), torch.randint(0, 4, (96,))
    train_loader = DataLoader(TensorDataset(x[:64], y[:64]), batch_size=16, shuffle=True)
    test_loader = DataLoader(TensorDataset(x[64:], y[64:]), batch_size=16)
    model = nn.Sequential(
        nn.Flatten(), nn.Linear(36, 32), nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 4), nn.LogSoftmax(1)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(2):
        model.train()
        for data, target in train_loader:
            optimizer.zero_grad()
            F.nll_loss(model(data), target).backward()
            optimizer.step()
    for epsilon in (0.0, 0.05, 0.1):
        print(f"epsilon {epsilon}: accuracy {test(model, test_loader, epsilon):.3f}")


if __name__ == "__main__":
    main()
