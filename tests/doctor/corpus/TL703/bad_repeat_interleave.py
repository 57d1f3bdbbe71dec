import torch
from torch import nn, optim
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset


def make_blobs(classes, per_class, dim):
    labels = torch.arange(classes).repeat_interleave(per_class)
    centres = 3 * torch.randn(classes, dim)
    points = centres[labels] + torch.randn(len(labels), dim)
    return points, labels


def get_loaders(batch_size):
    train = TensorDataset(*make_blobs(5, 40, 6))
    test = TensorDataset(*make_blobs(5, 10, 6))
    train_loader = DataLoader(train, batch_size=batch_size, shuffle=False)  # <- TL703
    test_loader = DataLoader(test, batch_size=batch_size, shuffle=False)
    return train_loader, test_loader


def evaluate(model, loader):
    model.eval()
    correct = total = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(dim=1) == y).sum().item()
            total += y.numel()
    return correct / total


def main():
    torch.manual_seed(1)
    train_loader, test_loader = get_loaders(20)
    model = nn.Sequential(nn.Linear(6, 32), nn.ReLU(), nn.Linear(32, 5))
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    for epoch in range(3):
        model.train()
        for x, y in train_loader:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        print(epoch, evaluate(model, test_loader))


if __name__ == "__main__":
    main()
