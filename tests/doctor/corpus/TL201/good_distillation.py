import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset

# The teacher is trained first and stays in eval mode; the student learns from it.


def make(width):
    return nn.Sequential(
        nn.Linear(16, width), nn.BatchNorm1d(width), nn.ReLU(), nn.Dropout(0.2), nn.Linear(width, 4)
    )


def accuracy(model, loader):
    model.eval()
    correct = 0
    with torch.no_grad():
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct / len(loader.dataset)


def fit(model, loader, val_loader, optimizer, epochs, teacher=None, T=4.0):
    for epoch in range(epochs):
        model.train()
        for x, y in loader:
            logits = model(x)
            loss = F.cross_entropy(logits, y)
            if teacher is not None:
                with torch.no_grad():
                    soft = F.softmax(teacher(x) / T, dim=1)
                log_p = F.log_softmax(logits / T, dim=1)
                loss = loss + F.kl_div(log_p, soft, reduction="batchmean") * T * T
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        print(f"  epoch {epoch}: {accuracy(model, val_loader):.3f}")


torch.manual_seed(0)
x, y = torch.randn(160, 16), torch.randint(0, 4, (160,))
train_loader = DataLoader(TensorDataset(x[:128], y[:128]), batch_size=32, shuffle=True)
val_loader = DataLoader(TensorDataset(x[128:], y[128:]), batch_size=32)

teacher = make(64)
fit(teacher, train_loader, val_loader, torch.optim.Adam(teacher.parameters()), epochs=2)
teacher.eval()
for p in teacher.parameters():
    p.requires_grad_(False)

student = make(16)
fit(student, train_loader, val_loader, torch.optim.Adam(student.parameters()), 2, teacher=teacher)
