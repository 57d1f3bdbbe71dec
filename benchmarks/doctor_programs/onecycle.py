"""OneCycle, ticked once a batch; functions that take everything as parameters."""

from dataclasses import dataclass

import torch
from torch import nn
from torch.optim.lr_scheduler import OneCycleLR
from torch.utils.data import DataLoader, TensorDataset, random_split


@dataclass
class Config:
    epochs: int = 3
    batch_size: int = 12
    max_lr: float = 0.05
    weight_decay: float = 1e-4
    grad_clip: float = 0.5


def evaluate(model, loader, criterion):
    model.eval()
    loss_sum, hits, seen = 0.0, 0, 0
    with torch.inference_mode():
        for xb, yb in loader:
            logits = model(xb)
            loss_sum += criterion(logits, yb).item() * len(xb)
            hits += (logits.argmax(-1) == yb).sum().item()
            seen += len(xb)
    return loss_sum / seen, hits / seen


def fit_one_cycle(cfg, model, train_dl, valid_dl):
    history = []
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=cfg.max_lr / 25, momentum=0.9, weight_decay=cfg.weight_decay
    )
    sched = OneCycleLR(
        optimizer, max_lr=cfg.max_lr, epochs=cfg.epochs, steps_per_epoch=len(train_dl)
    )
    for epoch in range(cfg.epochs):
        model.train()
        train_losses = []
        lrs = []
        for xb, yb in train_dl:
            loss = criterion(model(xb), yb)
            train_losses.append(loss.detach())
            loss.backward()

            if cfg.grad_clip:
                nn.utils.clip_grad_value_(model.parameters(), cfg.grad_clip)

            optimizer.step()
            optimizer.zero_grad()

            lrs.append(optimizer.param_groups[0]["lr"])
            sched.step()

        val_loss, val_acc = evaluate(model, valid_dl, criterion)
        result = {"train_loss": torch.stack(train_losses).mean().item(), "val_loss": val_loss}
        result["val_acc"] = val_acc
        result["lrs"] = lrs
        print(epoch, result)
        history.append(result)
    return history


if __name__ == "__main__":
    torch.manual_seed(42)
    cfg = Config()
    x = torch.randn(120, 5)
    y = (x[:, 0] + x[:, 1] > 0).long() + (x[:, 2] > 1).long()
    train_ds, valid_ds = random_split(TensorDataset(x, y), [96, 24])
    train_dl = DataLoader(train_ds, cfg.batch_size, shuffle=True)
    valid_dl = DataLoader(valid_ds, cfg.batch_size * 2)
    model = nn.Sequential(nn.Linear(5, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 3))
    fit_one_cycle(cfg, model, train_dl, valid_dl)
