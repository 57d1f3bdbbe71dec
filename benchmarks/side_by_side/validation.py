"""Validation on 500,000 rows of 30 columns: mean loss and accuracy, each row counted once.

30 → 64 → 2 with ReLU, batches of 1,024. By hand: `DataLoader(TensorDataset)` under
`torch.inference_mode`, losses and hits added up batch by batch. The floor only applies the model to
slices of the inputs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

from side_by_side.loops import Job
from side_by_side.workload import MEMORY, OURS, Figure, Goal, Make, Settings, Turn, Workload

SIZES, BATCH = (30, 64, 2), 1024
FIGURE = "seconds per pass"


def job(settings: Settings) -> Job:
    return Job(SIZES, samples=20_000 if settings.quick else 500_000, batch=BATCH)


def loader(one: Job) -> DataLoader[tuple[Tensor, ...]]:
    return DataLoader(TensorDataset(*one.data()), batch_size=BATCH)


def timed(run: Callable[[], object]) -> Turn:
    def turn() -> dict[str, float]:
        started = time.perf_counter()
        run()
        return {FIGURE: time.perf_counter() - started}

    return turn


def ours(settings: Settings) -> Turn:
    import trueloop

    one = job(settings)
    model, loss_fn = one.model(), trueloop.supervised(nn.CrossEntropyLoss())
    feed = trueloop.Feed(one.data(), BATCH)
    from torchmetrics.classification import MulticlassAccuracy

    accuracy = {"accuracy": MulticlassAccuracy(SIZES[-1], average="micro")}
    return timed(lambda: trueloop.evaluate(model, feed, loss_fn, accuracy))


def ours_in_full(settings: Settings) -> Turn:
    """With all metrics of the task."""
    import trueloop

    one = job(settings)
    model, loss_fn = one.model(), trueloop.supervised(nn.CrossEntropyLoss())
    feed = trueloop.Feed(one.data(), BATCH)
    metrics = trueloop.metrics.for_task("multiclass", classes=SIZES[-1])
    return timed(lambda: trueloop.evaluate(model, feed, loss_fn, metrics))


def by_hand(settings: Settings) -> Turn:
    one = job(settings)
    model, criterion, batches = one.model(), nn.CrossEntropyLoss(), loader(one)

    def run() -> tuple[float, float]:
        model.eval()
        loss, hits, samples = 0.0, 0, 0
        with torch.inference_mode():
            for inputs, targets in batches:
                logits = model(inputs)
                loss += criterion(logits, targets).item() * len(targets)
                hits += int((logits.argmax(1) == targets).sum())
                samples += len(targets)
        model.train()
        return loss / samples, hits / samples

    return timed(run)


def floor(settings: Settings) -> Turn:
    one = job(settings)
    model, inputs = one.model(), one.data()[0]

    def run() -> None:
        with torch.inference_mode():
            for part in inputs.split(BATCH):
                model(part)

    return timed(run)


def lightning(settings: Settings) -> Turn:
    import lightning as L
    from torchmetrics.classification import MulticlassAccuracy

    one = job(settings)

    class Module(L.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.model, self.criterion = one.model(), nn.CrossEntropyLoss()
            self.accuracy = MulticlassAccuracy(SIZES[-1], average="micro")

        def validation_step(self, batch: Any, number: int) -> None:
            inputs, targets = batch
            logits = self.model(inputs)
            self.accuracy(logits, targets)
            self.log("val_loss", self.criterion(logits, targets))
            self.log("val_accuracy", self.accuracy)

    trainer = L.Trainer(
        accelerator="cpu",
        devices=1,
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
    )
    module, batches = Module(), loader(one)
    return timed(lambda: trainer.validate(module, batches, verbose=False))


def ignite(settings: Settings) -> Turn:
    from ignite.engine import create_supervised_evaluator
    from ignite.metrics import Accuracy, Loss

    one = job(settings)
    metrics = {"loss": Loss(nn.CrossEntropyLoss()), "accuracy": Accuracy()}
    evaluator, batches = create_supervised_evaluator(one.model(), metrics), loader(one)
    return timed(lambda: evaluator.run(batches))


MAKES: dict[str, Make] = {
    OURS: ours,
    "trueloop, all metrics of the task": ours_in_full,
    "by hand": by_hand,
    "Lightning": lightning,
    "Ignite": ignite,
    "floor": floor,
}
WORKLOAD = Workload(
    title="validation on 500,000 rows × 30 columns",
    figures=(Figure(FIGURE, digits=3), Figure(MEMORY, digits=0)),
    contenders=MAKES,
    goals=(Goal("times as fast as the loop by hand", FIGURE, "by hand", OURS, at_least=1),),
)
