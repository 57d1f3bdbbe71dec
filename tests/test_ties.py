"""Of equal scores the one with the lower loss is the best, and then the earlier one: everywhere."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch
from torch import nn

import trueloop
from trueloop.checkpoint import Checkpoints, load_checkpoint
from trueloop.records import EvalRecord, is_better, loss_beside
from trueloop.run import Run
from trueloop.run.log import best_eval

LOSSES = [0.81, 0.25, 0.002, 0.002, 0.5]
BEST = 2


def test_a_tie_goes_to_the_lower_loss_and_then_to_the_earlier() -> None:
    assert is_better(1.0, 1.0, "max", loss=0.002, best_loss=0.81)
    assert not is_better(1.0, 1.0, "max", loss=0.81, best_loss=0.81)
    assert not is_better(1.0, 1.0, "max", loss=0.9, best_loss=0.81)
    assert not is_better(1.0, 1.0, "max"), "without losses the earlier one stays"
    assert not is_better(0.5, 1.0, "max", loss=0.0, best_loss=9.0), "the score comes first"
    assert not is_better(1.0, 1.0, "max", 0.1, loss=0.0, best_loss=9.0), "a tie is no gain"
    scores = {"val_accuracy": 1.0, "val_loss": 0.25, "train_loss": 0.5, "loss": 0.75}
    assert loss_beside(scores, "val_accuracy") == 0.25
    assert loss_beside(scores, "train_accuracy") == 0.5
    assert loss_beside(scores, "accuracy") == 0.75
    assert math.isnan(loss_beside({}, "val_accuracy"))


class AlwaysRight(trueloop.metrics.MetricSet):
    """Accuracy 1 from the first epoch on."""

    def reset(self) -> None: ...

    def to(self, device: Any) -> None: ...

    def update(self, outputs: Any, targets: Any) -> None: ...

    def compute(self) -> dict[str, float]:
        return {"accuracy": 1.0}


def step_with_losses() -> trueloop.Step:
    """A step whose evaluations give LOSSES, one after the other."""
    model, losses = nn.Linear(1, 1), iter(LOSSES)

    def loss_fn(model: nn.Module, batch: Any) -> Any:
        loss = model(batch).mean()
        if not torch.is_grad_enabled():
            loss = torch.tensor(next(losses))
        return trueloop.LossOutput(loss, outputs=batch, targets=batch)

    return trueloop.Step(model, torch.optim.SGD(model.parameters(), 0.1), loss_fn)


def test_fit_early_stopping_checkpoints_log_and_files_agree(tmp_path: Path) -> None:
    step, kept = step_with_losses(), []

    def keep(record: Any) -> None:
        if isinstance(record, EvalRecord):
            kept.append(step.model.bias.detach().clone())

    feed = trueloop.Feed(torch.ones(4, 1), 4)
    run = Run.create(tmp_path / "r", config={"monitor": "val_accuracy"})
    stop = trueloop.EarlyStopping("val_accuracy", patience=9)
    history = trueloop.fit(
        step, feed, feed, epochs=len(LOSSES), metrics=AlwaysRight(), run=run, sinks=[keep],
        early_stop=stop, checkpoints=Checkpoints(run.checkpoints, keep_best="val_accuracy"),
    )  # fmt: skip
    assert history.best_epoch == BEST
    assert torch.equal(step.model.bias, kept[BEST]), "the weights brought back"
    best = load_checkpoint(run.checkpoints, "best")
    assert best["epoch"] == BEST
    assert torch.equal(best["model"]["bias"], kept[BEST])
    line = best_eval([line for line in run.metrics() if line["kind"] == "eval"], "val_accuracy")
    assert line is not None
    assert line["epoch"] == BEST + 1, "files count from 1"
    said = json.loads((run.checkpoints / "best.json").read_text())
    assert said["epoch"] == BEST + 1
    assert math.isclose(said["scores"]["val_loss"], LOSSES[BEST], rel_tol=1e-6)


def test_a_loop_of_ones_own(tmp_path: Path) -> None:
    step = step_with_losses()
    feed = trueloop.Feed(torch.ones(4, 1), 4)
    saved = Checkpoints(tmp_path, keep_best="accuracy", asynchronous=False)
    for epoch in range(len(LOSSES)):
        for batch in feed.epoch(epoch):
            step(batch)
        scores = trueloop.evaluate(step.model, feed, step.loss_fn, AlwaysRight())
        step.end_epoch(scores)
        saved.keep(step, feed, scores)
    assert load_checkpoint(tmp_path, "best")["epoch"] == BEST
