import torch
import torch.nn as nn


class Trainer:
    def __init__(self, model, train_loader, val_loader):
        self.model = model
        self.train_loader = train_loader
        self.val_loader = val_loader
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.RMSprop(self.model.parameters(), lr=1e-3)
        self.lr_scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(self.optimizer, "min", patience=1)

    def fit(self, epochs):
        for epoch in range(epochs):
            self.model.train()
            for x, y in self.train_loader:
                self.optimizer.zero_grad()
                loss = self.criterion(self.model(x), y)
                loss.backward()
                self.optimizer.step()
            scores = self.evaluate()
            self.lr_scheduler.step(scores["f1"])  # <- TL604
            print(epoch, scores)

    @torch.no_grad()
    def evaluate(self):
        self.model.eval()
        tp = fp = fn = 0
        for x, y in self.val_loader:
            predicted, truth = self.model(x) > 0, y > 0.5
            tp += (predicted & truth).sum().item()
            fp += (predicted & ~truth).sum().item()
            fn += (~predicted & truth).sum().item()
        return {"f1": 2 * tp / max(2 * tp + fp + fn, 1), "recall": tp / max(tp + fn, 1)}


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(240, 5)
    y = (x[:, :1] + x[:, 1:2] > 0).float()
    data = torch.utils.data.TensorDataset(x, y)
    train_set, val_set = torch.utils.data.random_split(data, [180, 60])
    Trainer(
        nn.Linear(5, 1),
        torch.utils.data.DataLoader(train_set, batch_size=30, shuffle=True),
        torch.utils.data.DataLoader(val_set, batch_size=30),
    ).fit(5)
