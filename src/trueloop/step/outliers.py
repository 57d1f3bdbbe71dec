"""The handling of a gradient norm far above those of the run so far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, NoReturn

import torch
from torch import Tensor

from trueloop import _options
from trueloop.device import is_immediate
from trueloop.errors import ConfigError, OutlierError
from trueloop.records import OutlierCheck
from trueloop.shapes import Shape, Where
from trueloop.step import precision as precisions
from trueloop.step.deferred_reads import DeferredReads


@dataclass(frozen=True, kw_only=True)
class Outliers:
    """The response of a step to a gradient norm (before clipping) that is far above the usual.

    Attributes:
        factor: how many times the median of the last norms is too much, above 1.
        action: `clip` scales the gradient down to factor · median; `skip` leaves the update out, as
            if its batch had not been there.
        window: updates that the median is of: the last so many that were no outliers.
        min_updates: of those, how many there must be before an update is judged; at most `window`.
        max_in_a_row: outliers that may follow each other; at one more `OutlierError` is raised.

    Raises:
        ConfigError: a value that cannot work.
    """

    factor: float = 5.0
    action: str = "clip"
    window: int = 128
    min_updates: int = 32
    max_in_a_row: int = 10

    def __post_init__(self) -> None:
        if not _options.number("factor", self.factor, "5.0") > 1:
            raise ConfigError(
                f"factor={_options.shown(self.factor)} must be above 1: write e.g. factor=5.0"
            )
        _options.choice("action", self.action, ("clip", "skip"))
        _options.whole("window", self.window, 1, 128)
        _options.whole("min_updates", self.min_updates, 1, 32)
        _options.whole("max_in_a_row", self.max_in_a_row, 1, 10)
        if self.min_updates > self.window:
            raise ConfigError(
                f"min_updates={self.min_updates} is more than window={self.window}: write "
                f"min_updates={self.window} or less"
            )


class Position(NamedTuple):
    """Of an update: how many were applied before, its epoch, the position of its last micro-batch,
    and how many it has."""

    update: int
    epoch: int
    batch: int
    micro_batches: int


class NormHistory:
    """The gradient norms of the last updates, and the verdict on the next.

    All of it is on the gradient's device, and the same on every rank, as the norm is. `clip`
    multiplies the gradient by a tensor that is 1 but for outliers, so that no update waits; a run
    of too many outliers is then noticed one or a few updates late. `skip` waits for the verdict.
    """

    STATE: ClassVar[Shape] = {
        "norms": Where(Tensor, lambda t: t.ndim == 1, "the norms of the last updates"),
        "counts": Where(Tensor, lambda t: t.shape == (2,) and t.dtype == torch.int64, "two counts"),
    }

    def __init__(self, policy: Outliers | None, precision: precisions.Precision) -> None:
        self.is_on = policy is not None
        self.policy = policy or Outliers()
        self._precision = precision
        self._norms = torch.full((self.policy.window,), torch.nan)
        """Oldest first; NaN where there was none yet."""
        self._counts = torch.zeros(2, dtype=torch.int64)
        """Outliers in a row up to now, and in all."""
        self.late: DeferredReads[Position] = DeferredReads()

    @torch.no_grad()
    def check_norm(
        self, norm: Tensor, where: Position
    ) -> tuple[OutlierCheck | None, Tensor | None]:
        """The verdict on an update by its gradient's norm (a scalar, before clipping), which is
        then part of the history unless it is an outlier; and the factor for its gradient, None
        where that is surely 1. Without a policy None for both.

        A norm that is not finite is none of this policy's (see `NonFinite`), and not remembered.
        Raises `OutlierError` where that is one in a row too many.
        """
        if not self.is_on:
            return None, None
        policy, norms = self.policy, self._norms.to(norm.device)
        value = norm.to(norms.dtype)
        known = (~norms.isnan()).sum()
        # Sorted, NaN comes last. Without a wait: indexing by a tensor's value would be one.
        median = norms.sort().values.gather(0, ((known - 1) // 2).clamp(min=0).reshape(1))[0]
        is_finite = torch.isfinite(value)
        limit = policy.factor * median
        outlier = is_finite & (known >= policy.min_updates) & (median > 0) & (value > limit)
        in_a_row, total = self._counts.to(norm.device)
        in_a_row = torch.where(outlier, in_a_row + 1, torch.where(is_finite, 0, in_a_row))
        self._counts = torch.stack((in_a_row, total + outlier))
        moved = torch.cat((norms[1:], value.reshape(1)))
        self._norms = torch.where(is_finite & ~outlier, moved, norms)
        check = OutlierCheck(policy.action, outlier, median, where.batch + 1 - where.micro_batches)
        immediate = is_immediate(norm.device)
        if immediate or policy.action == "skip":
            self._check_row(int(in_a_row) if immediate or bool(outlier) else 0, where)
        else:
            self.late.send(in_a_row, where)
        if policy.action == "skip" or (immediate and not bool(outlier)):
            return check, None
        return check, torch.where(outlier, limit / value, 1.0).to(norm.dtype)

    def admits(self, check: OutlierCheck | None) -> bool:
        """Whether the update may be applied."""
        if check is None or check.action != "skip" or not bool(check.outlier):
            return True
        self._precision.abandon()
        return False

    def raise_late(self, *, wait: bool = False) -> None:
        """Raise `OutlierError` if a count that has arrived (with `wait`: any) is too high."""
        for in_a_row, where in self.late.due(wait=wait):
            self._check_row(int(in_a_row), where)

    def _check_row(self, in_a_row: int, where: Position) -> None:
        if in_a_row > self.policy.max_in_a_row:
            self.late.clear()
            _stop(self.policy, where)

    def state_dict(self) -> dict[str, Any]:
        return {"norms": self._norms, "counts": self._counts}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` returned; of a longer or shorter window the last norms."""
        self.late.clear()
        kept = state["norms"].detach().to(self._norms.dtype)[-self.policy.window :]
        empty = kept.new_full((self.policy.window - len(kept),), torch.nan)
        self._norms = torch.cat((empty, kept))
        self._counts = state["counts"].detach().clone()


def _stop(policy: Outliers, where: Position) -> NoReturn:
    raise OutlierError(
        f"update {where.update + 1} (epoch {where.epoch + 1}, batch {where.batch + 1}) is outlier "
        f"number {policy.max_in_a_row + 1} in a row: its gradient norm is more than "
        f"{policy.factor:g} times the running median: single batches are not the cause any more. "
        "Lower the lr, look at the data there, or write Outliers(max_in_a_row=…) with more"
    )


def checked_outliers(value: Any) -> Outliers | None:
    """The policy as `Step` takes it; `ConfigError` for anything else."""
    if value is None or isinstance(value, Outliers):
        return value
    if isinstance(value, str) and value in ("clip", "skip"):
        remedy = f"write outliers=Outliers(action={value!r})"
    elif isinstance(value, type):
        remedy = "write outliers=Outliers(), with brackets"
    else:
        remedy = "write e.g. outliers=Outliers(factor=5.0, action='clip')"
    raise ConfigError(f"outliers={_options.shown(value)} is not an Outliers: {remedy}")
