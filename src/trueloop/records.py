"""What flows upward: plain values that the step, the feed and the loop hand to their callers.

Tensors in a record stay on their device; reading one (`float(record.loss)`) is what waits for it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, Literal, NamedTuple
from weakref import WeakKeyDictionary

import torch
from torch import Tensor

from trueloop.errors import ConfigError, LossError, nearest

Count = int | float | Tensor | Callable[[], "int | float | Tensor"]
"""How many samples or tokens a mean loss is the mean of; a callable is asked only when needed."""


@dataclass(slots=True, eq=False)
class LossOutput:
    """What a `loss_fn(model, batch)` may return instead of the bare loss."""

    loss: Tensor
    """Mean loss of the batch, a scalar, with its graph."""
    count: Count | None = None
    """What the mean is over (tokens, or the summed class weights); None: the batch's samples."""
    outputs: Any = None
    """The model's output, for metrics."""
    targets: Any = None
    """What the output is compared with, for metrics."""

    @classmethod
    def of(cls, returned: Any) -> LossOutput:
        """What a `loss_fn` returned, made whole; `LossError` unless its loss is one number."""
        if isinstance(returned, cls):
            output = returned
        elif isinstance(returned, tuple) and len(returned) == 2:
            output = cls(*returned)
        else:
            output = cls(returned)
        loss = output.loss
        if not isinstance(loss, torch.Tensor):
            raise LossError(
                f"loss_fn returned {type(loss).__name__}: return the mean loss as a tensor, "
                "(loss, count) or a LossOutput"
            )
        if loss.ndim:
            if loss.numel() != 1:
                raise LossError(
                    f"the loss has shape {tuple(loss.shape)}: reduce it to one number, "
                    "e.g. loss.mean()"
                )
            output = replace(output, loss=loss.reshape(()))
        if output.count is not None:
            _check_count(output.count)
        return output


def _check_count(count: Any) -> None:
    number = count.numel() == 1 if isinstance(count, torch.Tensor) else isinstance(count, Real)
    if not number and not callable(count):
        raise LossError(
            f"loss_fn returned a loss and, as its count, a {type(count).__name__} that is no number"
            ": return (loss, count), or LossOutput(loss, outputs=..., targets=...) for metrics"
        )


class StepRecord(NamedTuple):
    """One call of `Step`. It describes its window so far; when `updated`, the whole update."""

    epoch: int
    """Epoch of the batch, from 0."""
    batch: int
    """Position of the micro-batch in its epoch, from 0."""
    update: int
    """How many optimizer updates have been applied, this one included."""
    loss: Tensor
    """Mean loss over the window so far: a detached scalar on the device."""
    grad_norm: Tensor | None
    """Global L2 norm of the gradient before clipping, a scalar; None while a window is open."""
    lr: float
    """Learning rate of the first parameter group in this update (before the schedule ticks)."""
    samples: int
    """Samples in the window so far."""
    updated: bool
    """The optimizer stepped."""
    skipped: bool = False
    """The window ended, but its gradient was not finite and the update was left out."""


@dataclass(frozen=True)
class EvalRecord:
    """One pass over a feed by `evaluate`, or the summary of an epoch without one."""

    scores: dict[str, float]
    """Name to value: `loss` and the metrics; within `fit`, prefixed: `val_loss`, `train_loss`."""
    samples: int
    """How many samples were counted, each once."""
    epoch: int | None = None
    """The epoch that had just ended, from 0; None outside `fit`."""
    update: int | None = None
    """How many updates had been applied; None outside `fit`."""
    seconds: float = 0.0
    """Wall time of the pass."""
    details: dict[str, Any] = field(default_factory=dict)
    """What is no single number: confusion matrix, per-class scores (plain lists)."""

    def __getitem__(self, name: str) -> float:
        return self.scores[name]


class Position(NamedTuple):
    """Where in its epoch a batch stands."""

    epoch: int
    batch: int
    """Position of the batch in the epoch, from 0."""
    last: bool
    """No batch follows it in this epoch."""


_in_hand: WeakKeyDictionary[object, tuple[object, Position]] = WeakKeyDictionary()


def hand_over(source: object, batch: object, position: Position) -> None:
    """Remember where `batch` stands for as long as `source`, the iterator, has it in hand.

    This is how a step learns that a batch is its epoch's last (so that a short accumulation window
    is closed, not dropped) without wrapping the user's batch in a class of ours.
    """
    # Taken out first, so that the latest stands last.
    _in_hand.pop(source, None)
    _in_hand[source] = (batch, position)


def take_back(source: object) -> None:
    """Forget the batch that `source` handed over; its epoch is over."""
    _in_hand.pop(source, None)


def position_of(batch: object) -> Position | None:
    """Where `batch` stands, if a live feed handed over this very object; None otherwise.

    Of several that did (a data set that fills one buffer again and again), the latest counts.
    """
    found = None
    for held, position in _in_hand.values():
        if held is batch:
            found = position
    return found


def batch_samples(batch: Any) -> int | None:
    """How many samples a batch holds: the first dimension of its first tensor, searched depth-first
    in tuples, lists and mappings; None if it holds no tensor of one dimension or more."""
    if isinstance(batch, torch.Tensor):
        return batch.shape[0] if batch.ndim else None
    if isinstance(batch, dict) or hasattr(batch, "values"):
        parts = batch.values()
    elif isinstance(batch, (list, tuple)):
        parts = batch
    else:
        return None
    for part in parts:
        found = batch_samples(part)
        if found is not None:
            return found
    return None


_RISING = (
    "accuracy",
    "top",
    "precision",
    "recall",
    "f1",
    "auroc",
    "ap",
    "r2",
    "iou",
    "dice",
    "bleu",
    "ndcg",
    "mrr",
    "hit_rate",
    "specificity",
    "kappa",
    "mcc",
    "spearman",
    "pearson",
)
_FALLING = (
    "loss",
    "error",
    "mae",
    "mse",
    "rmse",
    "mape",
    "perplexity",
    "nll",
    "hamming",
    "bits",
    "brier",
    "wer",
    "cer",
)


def direction(name: str) -> Literal["min", "max"] | None:
    """`"max"` if the score should rise, `"min"` if it should fall, None if its name does not say.

    `name` may carry a split's prefix (`val_accuracy`) and a suffix (`top5`, `f1_macro`).
    """
    words = (
        name.lower().removeprefix("train_").removeprefix("val_").removeprefix("test_").split("_")
    )
    for word in reversed(words):
        stem = word.rstrip("0123456789") or word
        if word in _FALLING or stem in _FALLING:
            return "min"
        if word in _RISING or stem in _RISING:
            return "max"
    return None


def names_like(name: str) -> list[str]:
    """Names of scores whose direction is known and that `name` may be a typing error of."""
    stem = name.rpartition("_")[2]
    close = difflib.get_close_matches(stem.lower(), [*_FALLING, *_RISING], n=3, cutoff=0.6)
    return [name.removesuffix(stem) + word for word in close]


def is_better(value: float, best: float | None, mode: str, min_delta: float = 0.0) -> bool:
    """Whether a score beats the best so far by more than `min_delta`; NaN beats nothing."""
    if math.isnan(value):
        return False
    if best is None or math.isnan(best):
        return True
    return value < best - min_delta if mode == "min" else value > best + min_delta


def monitored(scores: Mapping[str, float], name: str) -> float:
    """A score by its name; `ConfigError` with the nearest names if there is none."""
    if name not in scores:
        known = nearest(name, scores) or "there are none: pass those of evaluate()"
        raise ConfigError(f"no score is called {name!r}: {known}")
    return float(scores[name])
