import torch
import torch.nn as nn
import torch.optim.lr_scheduler as lrs


class Trainer:
    def __init__(self, model, train_loader, epochs):
        self.model = model
        self.train_loader = train_loader
        self.epochs = epochs
        self.criterion = nn.BCEWithLogitsLoss()
        self.optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        self.scheduler = lrs.MultiStepLR(self.optimizer, milestones=[2, 4], gamma=0.3)

    def train_epoch(self):
        self.scheduler.step()  # <- TL601
        self.model.train()
        total = 0.0
        for x, y in self.train_loader:
            self.optimizer.zero_grad()
            loss = self.criterion(self.model(x).squeeze(-1), y)
            loss.backward()
            self.optimizer.step()
            total += loss.item()
        return total / len(self.train_loader)

    def run(self):
        for epoch in range(self.epochs):
            loss = self.train_epoch()
            print(f"[{epoch}] loss={loss:.4f} lr={self.optimizer.param_groups[0]['lr']:.4g}")


def main():
    torch.manual_seed(4)
    torch.set_num_threads(1)
    x = torch.randn(160, 5)
    y = (x.sum(dim=1) > 0).float()
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True
    )
    Trainer(nn.Linear(5, 1), loader, epochs=5).run()


if __name__ == "__main__":
    main()
