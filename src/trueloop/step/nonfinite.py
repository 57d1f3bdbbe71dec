"""The handling of a gradient that is NaN or infinite, and the search for its origin."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor

from trueloop import _options, ranks
from trueloop.errors import NonFiniteError
from trueloop.step import precision as precisions
from trueloop.step.deferred_reads import DeferredReads


class NonFiniteContext(NamedTuple):
    """Finds where a gradient that is not finite comes from."""

    where: tuple[int, int, int]
    """Updates applied before this one, epoch, and batch position of the window's last batch."""
    norms: Tensor
    """The norm of each gradient."""
    names: list[str]
    """The parameters whose gradients these are."""
    losses: list[Tensor]
    """The losses of the window's micro-batches."""
    total: float | Tensor = 1.0
    """The samples, tokens or weights that the window's mean loss is over."""
    mean: Tensor | None = None
    """The mean loss of all ranks; None in one process."""

    def first_bad_loss(self) -> int | None:
        """The first of this rank's micro-batches whose loss is not finite."""
        bad = (~torch.isfinite(torch.stack(self.losses))).nonzero().flatten().tolist()
        return bad[0] if bad else None

    def is_loss_finite(self) -> bool:
        """The same on every rank."""
        if self.mean is not None:
            return bool(torch.isfinite(self.mean))
        return self.first_bad_loss() is None


class NonFinitePolicy:
    """The policy of a step: `stop` raises at a gradient that is not finite, `skip` leaves the
    update out.

    On the CPU the verdict is there at once; on MPS it is waited for. On CUDA, under `stop`, it
    travels by an asynchronous copy and is read by a later update, so that no update makes the
    device wait: the error arrives one or a few updates late, and names the update, the parameter
    and the batch where it happened. Many ranks have the same norm, and so the same verdict at the
    same update.
    """

    def __init__(self, policy: str, precision: precisions.Precision) -> None:
        self.policy = _options.choice("nonfinite", policy, ("stop", "skip"))
        self._precision = precision
        self.late: DeferredReads[NonFiniteContext] = DeferredReads()

    def admits(self, norm: Tensor, evidence: NonFiniteContext) -> bool:
        """Whether the gradient may be applied; raises under `stop`, False under `skip`.

        Under fp16 the scaler decides: overflow is how it finds its scale.
        """
        if isinstance(self._precision, precisions.Float16):
            return self._admits_scaled(norm, evidence)
        if self.policy == "stop" and norm.is_cuda:
            self.late.send(norm, evidence)
            return True
        if math.isfinite(norm.item()):
            return True
        if self.policy == "stop":
            _stop(evidence)
        return False

    def _admits_scaled(self, norm: Tensor, evidence: NonFiniteContext) -> bool:
        """Under fp16: an overflow is the scaler's to skip; all else is not."""
        if bool(torch.isfinite(norm)):
            return True
        is_over_nothing = not bool(evidence.total > 0)
        if self.policy == "stop" and (
            is_over_nothing or not evidence.is_loss_finite() or self._precision.exhausted()
        ):
            _stop(evidence)
        if is_over_nothing:
            # The scaler has seen the sum, which is finite: the division made it NaN.
            self._precision.abandon()
            return False
        return True

    def raise_late(self, *, wait: bool = False) -> None:
        """Raise `NonFiniteError` if a verdict that has arrived (with `wait`: any) is bad."""
        for norm, evidence in self.late.due(wait=wait):
            if not math.isfinite(norm.item()):
                self.late.clear()
                _stop(evidence)


def first_nonfinite(norms: Tensor, names: Sequence[str]) -> str | None:
    """Name of the first gradient whose norm is not finite; None if only their sum overflowed."""
    bad = (~torch.isfinite(norms)).nonzero().flatten().tolist()
    return names[bad[0]] if bad else None


def _stop(evidence: NonFiniteContext) -> NoReturn:
    """Raise the error, with the same words on every rank: all of them come here together."""
    update, epoch, batch = evidence.where
    parameter = first_nonfinite(evidence.norms, evidence.names)
    found = ranks.gathered(evidence.first_bad_loss(), "where the loss went bad")
    bad = [(place, rank) for rank, place in enumerate(found) if place is not None]
    on_rank = ""
    if bad:
        first, rank = min(bad)
        batch = batch - len(evidence.losses) + 1 + first
        on_rank = f" on rank {rank}" if len(found) > 1 else ""
        cause = "the loss was not finite already"
    elif not bool(evidence.total > 0):
        cause = "the count beside the loss is 0, so it is a mean over nothing"
    else:
        cause = "the loss was finite"
    what = f"of {parameter!r}" if parameter else "norm"
    raise NonFiniteError(
        f"update {update + 1}: the gradient {what} is not finite (epoch {epoch + 1}, "
        f"batch {batch + 1}{on_rank}; {cause}): lower the lr, clip the gradient, check this batch "
        "for NaN, or write nonfinite='skip' to leave such updates out",
        update=update,
        epoch=epoch,
        batch=batch,
        parameter=parameter,
    )
