import argparse

import torch
from torch import nn
from torch.optim import lr_scheduler


class Engine:
    def __init__(self, args, loader):
        self.args = args
        self.loader = loader
        self.model = nn.Linear(9, 1)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=args.lr)
        total = len(loader) * args.epochs
        self.scheduler = lr_scheduler.CosineAnnealingLR(self.optimizer, T_max=total, eta_min=1e-6)

    def train_one_epoch(self):
        self.model.train()
        for x, y in self.loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
        return loss.item()

    def run(self):
        for epoch in range(self.args.epochs):
            loss = self.train_one_epoch()
            self.scheduler.step()  # <- TL603
            print(f"epoch {epoch + 1}/{self.args.epochs} loss {loss:.4f}")


def get_args():
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--lr", type=float, default=1e-2)
    parser.add_argument("--batch_size", type=int, default=16)
    return parser.parse_args()


if __name__ == "__main__":
    args = get_args()
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(128, 9)
    dataset = torch.utils.data.TensorDataset(x, x.mean(dim=1, keepdim=True))
    loader = torch.utils.data.DataLoader(dataset, batch_size=args.batch_size, shuffle=True)
    Engine(args, loader).run()
