"""Accelerate: `prepare`, accumulation, clipping where gradients are synchronised, validation."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch import Tensor, nn
from torch.utils.data import DataLoader
from toy import FEATURES, KINDS, finish, samples

EPOCHS = 4
ACCUMULATE = 2


class Classifier(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(FEATURES, 32), nn.ReLU(), nn.Dropout(0.2))
        self.kind = nn.Linear(32, KINDS)
        self.size = nn.Linear(32, 1)

    def forward(self, features: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.trunk(features)
        return self.kind(hidden), self.size(hidden).squeeze(1)


def loss_of(model: nn.Module, batch: list[Tensor]) -> Tensor:
    features, kinds, sizes = batch
    logits, guesses = model(features)
    return F.cross_entropy(logits, kinds) + F.mse_loss(guesses, sizes)


def main() -> None:
    set_seed(0)
    accelerator = Accelerator(cpu=True, gradient_accumulation_steps=ACCUMULATE)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    train_loader = DataLoader(samples(512, 1), 16, shuffle=True)
    steps = EPOCHS * len(train_loader) // ACCUMULATE
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=steps)
    model, optimizer, train_loader, validation_loader, schedule = accelerator.prepare(
        model, optimizer, train_loader, DataLoader(samples(128, 2), 32), schedule
    )
    for _ in range(EPOCHS):
        model.train()
        seen = []
        for batch in train_loader:
            with accelerator.accumulate(model):
                loss = loss_of(model, batch)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    accelerator.clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                optimizer.zero_grad()
            seen.append(loss.detach())
        model.eval()
        total = 0.0
        for batch in validation_loader:
            with torch.no_grad():
                loss = loss_of(model, batch)
            total += accelerator.gather_for_metrics(loss).mean().item()
        accelerator.print(f"{torch.stack(seen).mean():.4f} {total / len(validation_loader):.4f}")
    finish(accelerator.unwrap_model(model))


if __name__ == "__main__":
    main()
