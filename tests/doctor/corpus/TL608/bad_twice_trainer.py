import torch
import torch.nn as nn
import torch.nn.functional as F


class Trainer:
    def __init__(self, model, optimizer, scheduler):
        self.model = model
        self.optimizer = optimizer
        self.scheduler = scheduler

    def training_step(self, batch):
        x, y = batch["x"], batch["y"]
        self.optimizer.zero_grad()
        loss = F.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.scheduler.step()  # <- TL608
        return loss.item()

    def train(self, loader, epochs):
        for epoch in range(epochs):
            self.model.train()
            for batch in loader:
                loss = self.training_step(batch)
            self.on_epoch_end(epoch, loss)

    def on_epoch_end(self, epoch, loss):
        self.scheduler.step()
        print(f"epoch {epoch}: {loss:.4f} lr {self.scheduler.get_last_lr()[0]:.4g}")


class Wave(torch.utils.data.Dataset):
    def __init__(self, n=128):
        self.x = torch.linspace(-3, 3, n).unsqueeze(1)
        self.y = torch.sin(self.x)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return {"x": self.x[i], "y": self.y[i]}


def main(epochs=6):
    torch.manual_seed(0)
    torch.set_num_threads(1)
    model = nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=epochs)
    loader = torch.utils.data.DataLoader(Wave(), batch_size=16, shuffle=True)
    Trainer(model, optimizer, scheduler).train(loader, epochs)


if __name__ == "__main__":
    main()
