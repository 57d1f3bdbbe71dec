"""Plain values that the step, the feed and the loop hand to their callers.

Tensors in a record stay on their device; only reading one (`float(record.loss)`) waits for it.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor

from trueloop import reprs
from trueloop.errors import ConfigError, LossError, nearest

__all__ = ["EvalRecord", "LossOutput", "OutlierCheck", "StepRecord"]

Count = int | float | Tensor | Callable[[], "int | float | Tensor"]
"""How many samples or tokens a mean loss is the mean of; a callable is asked only when needed."""


@dataclass(slots=True, eq=False)
class LossOutput:
    """A result of a `loss_fn(model, batch)` in place of the bare loss.

    Attributes:
        loss: mean loss of the batch, a scalar, with its graph.
        count: what the mean is over (tokens, or the summed class weights); None: the batch's
            samples.
        outputs: the model's output, for metrics.
        targets: what the output is compared with, for metrics.
        parts: named parts of the loss to log beside it (`{"reconstruction": …, "kl": …}`): scalars,
            means over the same count as the loss. They train nothing by themselves.
    """

    loss: Tensor
    count: Count | None = None
    outputs: Any = None
    targets: Any = None
    parts: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, returned: Any) -> LossOutput:
        """The result of a `loss_fn`, checked, its parts detached scalars on the loss's device.

        Args:
            returned: the loss, (loss, count), (loss, parts), (loss, count, parts) or a
                `LossOutput`.

        Returns:
            A `LossOutput` whose loss is a scalar.

        Raises:
            LossError: the loss is not one real number, the count not a number from 0 on, or a part
                not a number with a separate name.
        """
        if isinstance(returned, torch.Tensor):
            output = cls(returned)
        else:
            output = returned if isinstance(returned, cls) else cls._of_tuple(returned)
        loss = output.loss
        if not isinstance(loss, torch.Tensor):
            raise LossError(
                f"loss_fn returned {_kind_of(loss)}: return the mean loss as a tensor, "
                "(loss, count), (loss, parts) or a LossOutput"
            )
        if loss.ndim:
            if loss.numel() != 1:
                raise LossError(
                    f"the loss has shape {tuple(loss.shape)}: reduce it to one number, "
                    "e.g. loss.mean()"
                )
            output = replace(output, loss=loss.reshape(()))
        if loss.is_complex():
            raise LossError(
                f"the loss is {loss.dtype}: return a real number, e.g. (error * error.conj()).real"
            )
        if output.count is not None and not callable(output.count):
            _check_count(output.count)
        if output.parts:
            output = replace(output, parts=_scalars(output.parts, loss))
        return output

    @classmethod
    def _of_tuple(cls, returned: Any) -> LossOutput:
        if not isinstance(returned, tuple) or len(returned) not in (2, 3):
            return cls(returned)
        loss, *rest = returned
        parts = rest.pop() if isinstance(rest[-1], Mapping) else {}
        if len(rest) > 1:
            raise LossError(
                f"loss_fn returned a tuple of {len(returned)} whose last part is "
                f"{_kind_of(rest[-1])}: return (loss, count, {{'name': part}}), or "
                "LossOutput(loss, outputs=..., targets=...) for metrics"
            )
        return cls(loss, rest[0] if rest else None, parts=parts)


def resolve_count(count: Count | None, samples: int) -> int | float | Tensor:
    """The count that a mean divides by, as a number: `samples` for None, the result of a callable.

    Raises `LossError` unless it is a number from 0 on; a tensor on an accelerator is not read.
    """
    if count is None:
        return samples
    number = count() if callable(count) else count
    _check_count(number)
    return number


def _check_count(count: Any) -> None:
    single = (
        count.numel() == 1
        if isinstance(count, torch.Tensor)
        else isinstance(count, Real) and not isinstance(count, bool)
    )
    if not single:
        raise LossError(
            f"loss_fn returned a loss and, as its count, {_kind_of(count)}, which is not a number: "
            "return (loss, count), (loss, {'name': part}), or LossOutput(loss, outputs=..., "
            "targets=...) for metrics"
        )
    if isinstance(count, torch.Tensor) and count.device.type != "cpu":
        return  # reading it would wait
    value = float(count)
    if not (math.isfinite(value) and value >= 0):
        raise LossError(
            f"loss_fn returned the count {value:g} beside the loss: return how many samples or "
            "tokens the loss is the mean of, a number from 0 on"
        )


_RESERVED = frozenset(
    {"loss", "kind", "epoch", "batch", "update", "grad_norm", "lr", "samples", "skipped", "time"}
    | {"seconds"}
)
"""Names that a line of the log and the scores of an epoch already have."""


def _scalars(parts: Mapping[str, Any], loss: Tensor) -> dict[str, Tensor]:
    """The named parts of a loss as detached scalars; `LossError` for what is not one."""
    found: dict[str, Tensor] = {}
    for name, part in parts.items():
        if not isinstance(name, str) or not name or name in _RESERVED:
            raise LossError(
                f"loss_fn returned a part named {name!r}: choose a different name, such as 'kl' "
                "(not one of " + ", ".join(sorted(_RESERVED)) + ")"
            )
        if isinstance(part, torch.Tensor) and part.numel() == 1:
            found[name] = part.detach().reshape(()).to(loss.device)
        elif isinstance(part, Real):
            # A fill, which an accelerator does without a wait.
            found[name] = torch.full((), float(part), device=loss.device)
        else:
            raise LossError(
                f"loss_fn returned {_kind_of(part)} as the part {name!r}: return one number, "
                "e.g. part.mean()"
            )
    return found


def _kind_of(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    name = "None" if value is None else type(value).__name__
    return name if value is None else f"{'an' if name[0].lower() in 'aeiou' else 'a'} {name}"


class OutlierCheck(NamedTuple):
    """The findings of `Outliers` about an update.

    Attributes:
        action: what it does about an outlier: `clip` or `skip`.
        outlier: whether the gradient's norm is one, a bool scalar on the gradient's device.
        median: the running median of the norms before, a float32 scalar; NaN where there was none.
        first: position of the window's first micro-batch in its epoch, from 0.
        samples: called without arguments, it returns the indices of the update's samples, those of
            all ranks, or None where they are not known; set within `fit`.
    """

    action: str
    outlier: Tensor
    median: Tensor
    first: int
    samples: Callable[[], Sequence[int] | None] | None = None


class StepRecord(NamedTuple):
    """One call of `Step`. It describes its window so far; when `updated`, the whole update.

    Attributes:
        epoch: epoch of the batch, from 0.
        batch: position of the micro-batch in its epoch, from 0.
        update: how many optimizer updates have been applied, this one included.
        loss: mean loss over the window so far, of an update over that of all ranks: a detached
            scalar on the device.
        grad_norm: global L2 norm of the gradient before clipping, a scalar; None while a window is
            open.
        lr: learning rate of the first parameter group in this update (before the schedule ticks).
        samples: samples in the window so far; of an update, those of all ranks. A number on the
            host, on any device.
        updated: the optimizer stepped.
        skipped: the window ended, but its gradient was not finite, or an outlier, and the update
            was skipped.
        lrs: learning rate of each parameter group, by the group's `name` or else its number ("0",
            …).
        parts: mean over the window so far of each named part of the loss, of an update over those
            of all ranks: detached scalars. On an accelerator a rank has those parts that it has
            seen itself in this window.
        tokens: positions of token ids in the window so far, padding included; of an update, those
            of all ranks: the elements of each batch's first tensor, where that has two dimensions
            or more and the dtype int64 or int32; else 0. A number on the host, on any device.
        outlier: what `Step(outliers=…)` found of the update; None without it, and while a window
            is open.
    """

    epoch: int
    batch: int
    update: int
    loss: Tensor
    grad_norm: Tensor | None
    lr: float
    samples: int
    updated: bool
    skipped: bool = False
    lrs: Mapping[str, float] = MappingProxyType({})
    parts: Mapping[str, Tensor] = MappingProxyType({})
    tokens: int = 0
    outlier: OutlierCheck | None = None

    def __repr__(self) -> str:
        # Reads the loss, which waits for the device: only who prints a record pays.
        return reprs.described(
            self,
            f"update {self.update:,}",
            f"epoch {self.epoch}, batch {self.batch}",
            f"loss {reprs.short(float(self.loss))}",
            *(f"{name} {reprs.short(float(part))}" for name, part in self.parts.items()),
            None if self.grad_norm is None else f"grad_norm {reprs.short(float(self.grad_norm))}",
            f"lr {reprs.short(self.lr)}",
            f"{self.samples:,} samples",
            "skipped" if self.skipped else None if self.updated else "window open",
        )


@dataclass(frozen=True, repr=False)
class EvalRecord:
    """One pass over a feed by `evaluate`, or the summary of an epoch without one.

    Attributes:
        scores: name to value: `loss` and the metrics; within `fit`, prefixed: `val_loss`,
            `train_loss`.
        samples: how many samples were counted, each once.
        epoch: the epoch that it ends, or in which it was made, from 0; None outside `fit`.
        update: how many updates had been applied; None outside `fit`.
        seconds: wall time of the pass.
        details: what is not a single number: confusion matrix, per-class scores (plain lists).
    """

    scores: dict[str, float]
    samples: int
    epoch: int | None = None
    update: int | None = None
    seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    def __getitem__(self, name: str) -> float:
        return self.scores[name]

    def __repr__(self) -> str:
        return reprs.described(
            self,
            *(f"{name} {reprs.short(score)}" for name, score in self.scores.items()),
            None if self.epoch is None else f"epoch {self.epoch}",
            None if self.update is None else f"update {self.update:,}",
            f"{self.samples:,} samples",
        )

    def _repr_html_(self) -> str:
        rows = [(name, reprs.short(score)) for name, score in self.scores.items()]
        return reprs.html_table(f"{self.samples:,} samples", ("score", "value"), rows)


def first_tensor(batch: Any) -> Tensor | None:
    """The batch's first tensor of one dimension or more, searched depth-first in tuples, lists and
    mappings; None without one."""
    if isinstance(batch, torch.Tensor):
        return batch if batch.ndim else None
    if isinstance(batch, dict) or hasattr(batch, "values"):
        parts = batch.values()
    elif isinstance(batch, (list, tuple)):
        parts = batch
    else:
        return None
    for part in parts:
        found = first_tensor(part)
        if found is not None:
            return found
    return None


def batch_samples(batch: Any) -> int | None:
    """How many samples a batch has: the first dimension of its first tensor; None without a tensor
    of one dimension or more."""
    return batch_counts(batch)[0]


def batch_tokens(batch: Any) -> int:
    """How many tokens a batch has: the elements of its first tensor, where that is of token ids
    (batch, length, ...): int64 or int32, of two dimensions or more; else 0."""
    return batch_counts(batch)[1]


def batch_counts(batch: Any) -> tuple[int | None, int]:
    """`batch_samples` and `batch_tokens` at once."""
    first = batch
    while type(first) in (tuple, list) and first:
        first = first[0]
    if not (isinstance(first, torch.Tensor) and first.ndim):
        first = first_tensor(batch)
    if first is None:
        return None, 0
    has_tokens = first.dtype in _TOKEN_IDS and first.ndim > 1
    return first.shape[0], first.numel() if has_tokens else 0


_TOKEN_IDS = (torch.int64, torch.int32)


def is_empty(batch: Any) -> bool:
    """Whether every tensor of one dimension or more in the batch has no rows."""
    if isinstance(batch, torch.Tensor):
        return batch.ndim > 0 and batch.shape[0] == 0
    parts = batch.values() if hasattr(batch, "values") else batch
    tensors = [part for part in parts if batch_samples(part) is not None]
    return bool(tensors) and all(is_empty(part) for part in tensors)


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


def is_better(
    value: float,
    best: float | None,
    mode: str,
    min_delta: float = 0.0,
    *,
    loss: float = math.nan,
    best_loss: float = math.nan,
) -> bool:
    """Whether a score beats the best so far by more than `min_delta`; NaN beats nothing.

    A tie goes to the lower loss, where both are known (`loss_beside`), and then to the earlier.
    """
    if math.isnan(value):
        return False
    if best is None or math.isnan(best):
        return True
    if value == best and not min_delta:
        return loss < best_loss
    return value < best - min_delta if mode == "min" else value > best + min_delta


def loss_beside(scores: Mapping[str, Any], name: str) -> float:
    """The loss of the same split as the score `name`, among the same scores; NaN if there is none.

    That beside `val_accuracy` is `val_loss`, that beside `accuracy` is `loss`.
    """
    split = next((s for s in ("train_", "val_", "test_") if name.startswith(s)), "")
    loss = scores.get(f"{split}loss")
    return math.nan if loss is None else float(loss)


def monitored(scores: Mapping[str, float], name: str) -> float:
    """A score by its name; `ConfigError` with the scores that there are if there is none."""
    if name not in scores:
        hint = nearest(name, scores) or "there are none, pass those of evaluate()"
        if hint.startswith("did you mean"):
            hint += " The scores are " + ", ".join(repr(known) for known in sorted(scores)[:12])
        raise ConfigError(f"no score is called {name!r}: {hint}")
    return float(scores[name])
