"""A Trainer class: fit, train_epoch, validate, history, the best weights kept."""

import copy

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Classifier(nn.Module):
    def __init__(self, features, hidden, classes):
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(features, hidden), nn.BatchNorm1d(hidden), nn.ReLU(), nn.Dropout(0.3)
        )
        self.head = nn.Linear(hidden, classes)

    def forward(self, x):
        return self.head(self.body(x))


class Trainer:
    def __init__(self, model, train_loader, val_loader, lr=0.01, epochs=4, device="cpu"):
        self.device = device
        self.model = model.to(device)
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.epochs = epochs
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(
            self.optimizer, T_max=self.epochs
        )
        self.history = {"train_loss": [], "val_loss": [], "val_acc": []}
        self.best_acc = 0.0
        self.best_state = None

    def train_epoch(self):
        self.model.train()
        total, count = 0.0, 0
        for x, y in self.train_loader:
            x, y = x.to(self.device), y.to(self.device)
            self.optimizer.zero_grad()
            logits = self.model(x)
            loss = self.criterion(logits, y)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), max_norm=0.5)
            self.optimizer.step()
            total += loss.item() * x.size(0)
            count += x.size(0)
        return total / count

    @torch.no_grad()
    def validate(self):
        self.model.eval()
        total, correct, count = 0.0, 0, 0
        for x, y in self.val_loader:
            x, y = x.to(self.device), y.to(self.device)
            logits = self.model(x)
            total += self.criterion(logits, y).item() * x.size(0)
            correct += (logits.argmax(1) == y).sum().item()
            count += x.size(0)
        return total / count, correct / count

    def fit(self):
        for epoch in range(self.epochs):
            train_loss = self.train_epoch()
            val_loss, val_acc = self.validate()
            self.scheduler.step()
            self.history["train_loss"].append(train_loss)
            self.history["val_loss"].append(val_loss)
            self.history["val_acc"].append(val_acc)
            if val_acc > self.best_acc:
                self.best_acc = val_acc
                self.best_state = copy.deepcopy(self.model.state_dict())
            print(f"epoch {epoch}: {train_loss:.4f} {val_loss:.4f} {val_acc:.3f}")
        self.model.load_state_dict(self.best_state)
        return self.history


def make_loaders(seed=0):
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(120, 6, generator=generator)
    y = (x[:, 0] * x[:, 1] > 0).long()
    train = TensorDataset(x[:88], y[:88])
    val = TensorDataset(x[88:], y[88:])
    return DataLoader(train, batch_size=16, shuffle=True), DataLoader(val, batch_size=16)


if __name__ == "__main__":
    torch.manual_seed(0)
    train_loader, val_loader = make_loaders()
    trainer = Trainer(Classifier(6, 24, 2), train_loader, val_loader)
    trainer.fit()
