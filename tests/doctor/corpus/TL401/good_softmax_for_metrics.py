import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


def build_data(n, seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.randint(0, 3, (n,), generator=generator)
    x = torch.randn(n, 12, generator=generator)
    x[:, :3] += 2 * F.one_hot(y, 3)
    return TensorDataset(x, y)


def evaluate(model, loader):
    model.eval()
    correct, confidence, seen = 0, 0.0, 0
    with torch.no_grad():
        for x, y in loader:
            probabilities = F.softmax(model(x), dim=1)
            top, predicted = probabilities.max(dim=1)
            correct += (predicted == y).sum().item()
            confidence += top.sum().item()
            seen += y.size(0)
    return correct / seen, confidence / seen


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    train_loader = DataLoader(build_data(192, 1), batch_size=32, shuffle=True)
    val_loader = DataLoader(build_data(96, 2), batch_size=32)
    model = nn.Sequential(nn.Linear(12, 24), nn.ReLU(), nn.Linear(24, 3))
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    softmax = nn.Softmax(dim=1)

    for epoch in range(4):
        model.train()
        hits, seen = 0, 0
        for x, y in train_loader:
            logits = model(x)
            loss = criterion(logits, y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            probs = softmax(logits.detach())
            hits += (probs.argmax(1) == y).sum().item()
            seen += len(y)
        accuracy, confidence = evaluate(model, val_loader)
        print(f"{epoch}: train {hits / seen:.3f} val {accuracy:.3f} confidence {confidence:.3f}")


if __name__ == "__main__":
    main()
