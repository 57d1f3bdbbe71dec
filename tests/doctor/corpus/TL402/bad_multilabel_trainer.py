import torch
import torch.nn as nn
import torch.nn.functional as F
from dataclasses import dataclass


@dataclass
class Config:
    labels: int = 6
    dim: int = 20
    hidden: int = 32
    lr: float = 5e-3
    epochs: int = 3
    batch_size: int = 32


class MultiLabelTrainer:
    def __init__(self, config):
        self.cfg = config
        self.backbone = nn.Sequential(nn.Linear(config.dim, config.hidden), nn.ReLU())
        self.classifier = nn.Linear(config.hidden, config.labels)
        parameters = [*self.backbone.parameters(), *self.classifier.parameters()]
        self.opt = torch.optim.AdamW(parameters, lr=config.lr)

    def predict(self, x):
        return self.classifier(self.backbone(x)).sigmoid()

    def training_step(self, x, y):
        scores = self.predict(x)
        loss = F.binary_cross_entropy_with_logits(scores, y)  # <- TL402
        self.opt.zero_grad(set_to_none=True)
        loss.backward()
        self.opt.step()
        return loss.detach()

    def fit(self, loader):
        for epoch in range(self.cfg.epochs):
            total = torch.zeros(())
            for x, y in loader:
                total += self.training_step(x, y)
            print(f"[{epoch}] {total.item() / len(loader):.4f}")


def main():
    torch.manual_seed(0)
    torch.set_num_threads(1)
    cfg = Config()
    mixing = torch.randn(cfg.dim, cfg.labels)
    x = torch.randn(256, cfg.dim)
    y = ((x @ mixing) > 2).float()
    dataset = torch.utils.data.TensorDataset(x, y)
    loader = torch.utils.data.DataLoader(dataset, batch_size=cfg.batch_size, shuffle=True)
    MultiLabelTrainer(cfg).fit(loader)


if __name__ == "__main__":
    main()
