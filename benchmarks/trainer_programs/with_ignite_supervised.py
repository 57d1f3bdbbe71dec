"""Ignite: the trainer and the evaluator that it makes itself, with accumulation."""

from __future__ import annotations

import torch
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.handlers import CosineAnnealingScheduler
from ignite.metrics import Accuracy, Loss
from ignite.utils import manual_seed
from torch import Tensor, nn
from torch.utils.data import DataLoader
from toy import FEATURES, KINDS, finish, samples


def pair(batch: list[Tensor], device: object, non_blocking: bool) -> tuple[Tensor, Tensor]:
    return batch[0], batch[1]


def main() -> None:
    manual_seed(0)
    model = nn.Sequential(
        nn.Linear(FEATURES, 32),
        nn.BatchNorm1d(32),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(32, KINDS),
    )
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    criterion = nn.CrossEntropyLoss()
    train_loader = DataLoader(samples(512, 1), 16, shuffle=True)
    validation_loader = DataLoader(samples(128, 2), 32)
    trainer = create_supervised_trainer(
        model, optimizer, criterion, prepare_batch=pair, gradient_accumulation_steps=2
    )
    evaluator = create_supervised_evaluator(
        model, {"accuracy": Accuracy(), "loss": Loss(criterion)}, prepare_batch=pair
    )
    steps = 4 * len(train_loader)
    trainer.add_event_handler(
        Events.ITERATION_STARTED, CosineAnnealingScheduler(optimizer, "lr", 0.1, 0.0, steps)
    )

    @trainer.on(Events.EPOCH_COMPLETED)
    def validate() -> None:
        evaluator.run(validation_loader)
        print(evaluator.state.metrics)

    trainer.run(train_loader, max_epochs=4)
    finish(model)


if __name__ == "__main__":
    main()
