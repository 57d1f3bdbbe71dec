import torch
from torch import nn, optim


class Trainer:
    def __init__(self, net, loader, lr=1e-2):
        self.net = net
        self.loader = loader
        self.optimizer = optim.SGD(net.parameters(), lr=lr)
        self.lr_scheduler = optim.lr_scheduler.ExponentialLR(self.optimizer, gamma=0.8)  # <- TL607
        self.loss_fn = nn.MSELoss()
        self.configure(lr)

    def configure(self, lr):
        decay = [p for p in self.net.parameters() if p.ndim > 1]
        rest = [p for p in self.net.parameters() if p.ndim <= 1]
        groups = [{"params": decay, "weight_decay": 0.01}, {"params": rest, "weight_decay": 0.0}]
        self.optimizer = optim.AdamW(groups, lr=lr)

    def run_epoch(self):
        self.net.train()
        for x, y in self.loader:
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss_fn(self.net(x), y)
            loss.backward()
            self.optimizer.step()
        self.lr_scheduler.step()
        return loss.item()


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    x = torch.randn(128, 5)
    y = torch.tanh(x.sum(dim=1, keepdim=True))
    loader = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(x, y), batch_size=32, shuffle=True
    )
    trainer = Trainer(nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Linear(16, 1)), loader)
    for epoch in range(4):
        print(epoch, trainer.run_epoch(), trainer.optimizer.param_groups[0]["lr"])


if __name__ == "__main__":
    main()
