"""Ignite: an update function of one's own, a supervised evaluator, a schedule by the epoch."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from ignite.engine import Engine, Events
from ignite.handlers import LRScheduler
from ignite.metrics import Average, RunningAverage
from ignite.utils import manual_seed
from torch import Tensor, nn
from torch.utils.data import DataLoader
from toy import FEATURES, KINDS, finish, samples


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
    manual_seed(0)
    model = Classifier()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, gamma=0.5)
    train_loader = DataLoader(samples(512, 1), 16, shuffle=True)
    validation_loader = DataLoader(samples(128, 2), 32)
    seen: list[Tensor] = []

    def update(engine: Engine, batch: list[Tensor]) -> float:
        model.train()
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        seen.append(loss.detach())
        return loss.item()

    def evaluate(engine: Engine, batch: list[Tensor]) -> float:
        model.eval()
        with torch.no_grad():
            return loss_of(model, batch).item()

    trainer, evaluator = Engine(update), Engine(evaluate)
    RunningAverage(output_transform=float).attach(trainer, "loss")
    Average().attach(evaluator, "loss")
    trainer.add_event_handler(Events.EPOCH_COMPLETED, LRScheduler(schedule))

    @trainer.on(Events.EPOCH_COMPLETED)
    def validate() -> None:
        evaluator.run(validation_loader)
        print(f"{trainer.state.metrics['loss']:.4f} {evaluator.state.metrics['loss']:.4f}")

    trainer.run(train_loader, max_epochs=4)
    finish(model)


if __name__ == "__main__":
    main()
