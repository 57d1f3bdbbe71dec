import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class Trainer:
    def __init__(self, model, train_loader, val_loader, epochs=3, lr=1e-3):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.epochs = epochs
        self.criterion = nn.CrossEntropyLoss()
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=lr)
        self.history = {"train_loss": [], "val_acc": []}

    def fit(self):
        self.model.train()
        for epoch in range(self.epochs):
            train_loss = self._train_epoch()
            val_acc = self._validate()
            self.history["train_loss"].append(train_loss)
            self.history["val_acc"].append(val_acc)
            print(f"[{epoch + 1}/{self.epochs}] loss={train_loss:.4f} acc={val_acc:.3f}")
        return self.history

    def _train_epoch(self):
        running, seen = 0.0, 0
        for features, labels in self.train_loader:
            self.optimizer.zero_grad()
            logits = self.model(features)  # <- TL201
            loss = self.criterion(logits, labels)
            loss.backward()
            self.optimizer.step()
            running += loss.item() * features.size(0)
            seen += features.size(0)
        return running / seen

    @torch.no_grad()
    def _validate(self):
        self.model.eval()
        correct, total = 0, 0
        for features, labels in self.val_loader:
            predictions = self.model(features).argmax(dim=-1)
            correct += (predictions == labels).sum().item()
            total += labels.numel()
        return correct / total


def build_model(num_features, num_classes):
    return nn.Sequential(
        nn.Linear(num_features, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Dropout(p=0.3),
        nn.Linear(32, num_classes),
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    dataset = TensorDataset(torch.randn(120, 6), torch.randint(0, 3, (120,)))
    train_set, val_set = random_split(dataset, [96, 24])
    trainer = Trainer(
        build_model(6, 3),
        DataLoader(train_set, batch_size=16, shuffle=True),
        DataLoader(val_set, batch_size=16),
    )
    trainer.fit()
