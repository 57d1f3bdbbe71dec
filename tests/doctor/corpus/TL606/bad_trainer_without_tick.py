import torch
from torch import nn
from torch.optim import AdamW
from torch.optim.lr_scheduler import CosineAnnealingLR


class Trainer:
    def __init__(self, model, loader, epochs):
        self.model, self.loader, self.epochs = model, loader, epochs
        self.optimizer = AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)
        self.scheduler = CosineAnnealingLR(self.optimizer, T_max=epochs)  # <- TL606
        self.history = []

    def train_epoch(self):
        self.model.train()
        total, seen = 0.0, 0
        for x, y in self.loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            total += loss.item() * len(x)
            seen += len(x)
        return total / seen

    def fit(self):
        for epoch in range(self.epochs):
            loss = self.train_epoch()
            self.history.append({"loss": loss, "lr": self.scheduler.get_last_lr()[0]})
            print(epoch, self.history[-1])


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(160, 6)
    y = x.prod(dim=1, keepdim=True)
    dataset = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True)
    model = nn.Sequential(nn.Linear(6, 24), nn.SiLU(), nn.Linear(24, 1))
    Trainer(model, loader, epochs=4).fit()


if __name__ == "__main__":
    main()
