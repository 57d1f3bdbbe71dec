import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

EPS, ALPHA, STEPS = 0.1, 0.04, 3


def pgd(model, images, labels):
    """Looks for the worst noise, with the model in eval mode."""
    model.eval()
    delta = torch.zeros_like(images).uniform_(-EPS, EPS).requires_grad_(True)
    for _ in range(STEPS):
        loss = F.cross_entropy(model(images + delta), labels)
        (grad,) = torch.autograd.grad(loss, delta)
        delta.data = (delta + ALPHA * grad.sign()).clamp(-EPS, EPS)
    model.train()
    return (images + delta).detach()


def main():
    torch.manual_seed(0)
    images, labels = torch.rand(96, 1, 6, 6), torch.randint(0, 3, (96,))
    train_loader = DataLoader(TensorDataset(images[:64], labels[:64]), batch_size=16, shuffle=True)
    test_loader = DataLoader(TensorDataset(images[64:], labels[64:]), batch_size=16)
    model = nn.Sequential(nn.Flatten(), nn.Linear(36, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    for epoch in range(2):
        model.train()
        for images, labels in train_loader:
            adversarial = pgd(model, images, labels)
            optimizer.zero_grad()
            loss = F.cross_entropy(model(adversarial), labels)
            loss.backward()
            optimizer.step()
        robust = 0
        for images, labels in test_loader:
            adversarial = pgd(model, images, labels)
            model.eval()
            with torch.no_grad():
                robust += (model(adversarial).argmax(1) == labels).sum().item()
        print(f"epoch {epoch}: robust accuracy {robust / len(test_loader.dataset):.3f}")


if __name__ == "__main__":
    main()
