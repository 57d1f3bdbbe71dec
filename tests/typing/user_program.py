"""A user's program, fully typed: `make types` reads it under --strict, as a user's own project.

Nothing runs it. `assert_type` fails where a public name is `Any`, or of a type that a user would
have to cast. `make dist` reads it with mypy and pyright again, against the installed wheel.
"""

from collections.abc import Callable
from pathlib import Path
from typing import assert_type

import torch
from torch import Tensor, nn

import trueloop
from trueloop import losses, metrics, optimizers, schedules
from trueloop.checkpoint import Checkpoints
from trueloop.folds import CrossValidation, Fold, cross_validate
from trueloop.generate import generate, stream
from trueloop.records import EvalRecord, LossOutput, StepRecord

Batch = tuple[Tensor, Tensor]


def two_losses(model: nn.Module, batch: Batch) -> LossOutput:
    inputs, targets = batch
    outputs: Tensor = model(inputs)
    error = nn.functional.mse_loss(outputs, targets)
    return LossOutput(error + 0.1 * outputs.square().mean(), parts={"error": error.detach()})


def report(record: StepRecord | EvalRecord) -> None:
    if isinstance(record, EvalRecord):
        assert_type(record.scores["val_loss"], float)
        assert_type(record.update, int | None)
    else:
        assert_type(record.loss, Tensor)
        assert_type(record.lr, float)
        assert_type(record.updated, bool)


def own_loop(train: trueloop.Feed, val: trueloop.Feed, model: nn.Module) -> dict[str, float]:
    loss_fn = trueloop.supervised(nn.CrossEntropyLoss())
    step = trueloop.Step(
        model,
        optimizers.adamw(model, lr=1e-3),
        loss_fn,
        schedule=schedules.warmup_cosine("5%"),
        precision="bf16",
        accumulate=2,
        clip_norm=1.0,
        average=trueloop.EMA(0.999),
    )
    step.plan(epochs=2, batches=len(train))
    scores: dict[str, float] = {}
    for epoch in range(2):
        for batch in train.epoch(epoch):
            record = step(batch)
            assert_type(record, StepRecord)
            report(record)
        found = trueloop.evaluate(model, val, loss_fn, metrics.for_task("multiclass", classes=3))
        assert_type(found, EvalRecord)
        step.end_epoch(found)
        scores.update(found.scores)
    state = step.state_dict()
    step.load_state_dict(state)
    return scores


def with_fit(train: trueloop.Feed, val: trueloop.Feed, model: nn.Module, folder: Path) -> float:
    step = trueloop.Step(model, optimizers.sgd(model, lr=0.1), two_losses)
    history = trueloop.fit(
        step,
        train,
        val,
        epochs=2,
        eval_every="10 updates",
        sinks=[report, trueloop.trackers.CSV(folder / "curves")],
        early_stop=trueloop.EarlyStopping("val_loss", patience=2),
        checkpoints=Checkpoints(folder / "checkpoints", keep_last=2),
        resume_from=None,
    )
    assert_type(history, trueloop.History)
    assert_type(history.updates, int)
    assert_type(history.reason, str)
    trueloop.save_weights(model, folder / "weights.safetensors")
    trueloop.load_weights(model, folder / "weights.safetensors")
    return history.best or 0.0


def folds_of(labels: Tensor, train: Callable[[Fold], dict[str, float]]) -> CrossValidation:
    found = cross_validate(train, labels.numpy(), folds=3)
    assert_type(found.mean, dict[str, float])
    return found


def text(model: nn.Module, prompt: Tensor) -> list[int]:
    found = generate(model, prompt, max_new_tokens=4, temperature=0.8)
    assert_type(found.tokens, Tensor)
    pieces = [piece.tokens for piece in stream(model, prompt, max_new_tokens=4)]
    assert_type(pieces[0], list[int | None])
    return [int(token) for token in found.tokens[0]]


def feeds() -> tuple[trueloop.Feed, trueloop.Feed]:
    trueloop.seed_everything(0)
    inputs, targets = torch.randn(64, 4), torch.randint(3, (64,))
    train = trueloop.Feed((inputs, targets), 8, shuffle=True, weights="balanced")
    assert_type(len(train), int)
    return train, trueloop.Feed((inputs, targets), 32)


def by_task(outputs: Tensor, targets: Tensor) -> LossOutput | Tensor:
    loss: LossOutput | Tensor = losses.for_task("multiclass", classes=3)(outputs, targets)
    return loss


def watched(train: Callable[[], None]) -> int:
    with trueloop.watch() as watching:
        train()
    return len(watching.findings)


def predicted(folder: Path) -> Tensor:
    run = trueloop.Run(folder)
    assert_type(run, trueloop.Run)
    best = run.model()
    assert_type(best, nn.Module)
    outputs: Tensor = trueloop.predict(best, trueloop.Feed(torch.randn(8, 4), 4))
    return outputs
