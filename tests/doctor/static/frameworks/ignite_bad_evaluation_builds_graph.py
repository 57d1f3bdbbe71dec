import torch
from ignite.engine import Engine, Events
from torch import nn


class Experiment:
    def __init__(self, net, train_loader, val_loader):
        self.net = net
        self.optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
        self.val_loader = val_loader
        self.trainer = Engine(self.train_step)
        self.evaluator = Engine(self.val_step)
        self.trainer.add_event_handler(Events.EPOCH_COMPLETED(every=2), self.validate)
        self.trainer.run(train_loader, max_epochs=20)

    def train_step(self, engine, batch):
        self.net.train()
        self.optimizer.zero_grad()
        loss = nn.functional.mse_loss(self.net(batch["x"]), batch["y"])
        loss.backward()
        self.optimizer.step()
        return loss.item()

    def val_step(self, engine, batch):
        self.net.eval()
        return self.net(batch["x"]).argmax(1), batch["y"]  # <- TL203

    def validate(self, engine):
        self.evaluator.run(self.val_loader)


if __name__ == "__main__":
    x, y = torch.randn(64, 3), torch.randn(64, 1)
    rows = [{"x": a, "y": b} for a, b in zip(x, y)]
    train = torch.utils.data.DataLoader(rows, batch_size=8, shuffle=True)
    Experiment(nn.Sequential(nn.Linear(3, 8), nn.Dropout(), nn.Linear(8, 1)), train, train)
