"""What happens at a gradient that is NaN or infinite, and where it came from."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import torch
from torch import Tensor

from trueloop.errors import NonFiniteError
from trueloop.step import precision as precisions


class Evidence(NamedTuple):
    """What says where a gradient that is not finite comes from."""

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


@dataclass
class _Pending:
    """A verdict on its way from the accelerator to the host."""

    finite: Tensor
    arrived: torch.cuda.Event
    evidence: Evidence


class NonFinite:
    """The policy of a step: `stop` raises at a gradient that is not finite, `skip` leaves the
    update out.

    On the CPU the verdict is there at once; on MPS it is waited for. On CUDA, under `stop`, it
    travels by an asynchronous copy and is read by a later update, so that no update makes the
    device wait: the error arrives one or a few updates late, and names the update, the parameter
    and the batch where it happened.
    """

    def __init__(self, policy: str, precision: precisions.Precision) -> None:
        self.policy = policy
        self._precision = precision
        self._pending: list[_Pending] = []

    def admits(self, norm: Tensor, evidence: Evidence) -> bool:
        """Whether the gradient may be applied; raises under `stop`, False under `skip`.

        Under fp16 the scaler decides: overflow is how it finds its scale.
        """
        if isinstance(self._precision, precisions.Float16):
            if self.policy == "stop" and not bool(torch.isfinite(norm)):
                losses = torch.stack(evidence.losses)
                if not bool(torch.isfinite(losses).all()) or self._precision.exhausted():
                    _stop(evidence)
            return True
        if self.policy == "stop" and norm.is_cuda:
            self._send(norm, evidence)
            return True
        if math.isfinite(norm.item()):
            return True
        if self.policy == "stop":
            _stop(evidence)
        return False

    def _send(self, norm: Tensor, evidence: Evidence) -> None:
        """Start the verdict on an update's norm on its way to the host."""
        # Such a copy goes to pinned memory, and may be read once the event has passed.
        finite = torch.isfinite(norm).to("cpu", non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record(torch.cuda.current_stream(norm.device))
        self._pending.append(_Pending(finite, arrived, evidence))

    def raise_late(self, *, wait: bool = False) -> None:
        """Raise `NonFiniteError` if a verdict that has arrived (with `wait`: any) is bad."""
        while self._pending and (wait or self._pending[0].arrived.query()):  # type: ignore[no-untyped-call]
            verdict = self._pending.pop(0)
            verdict.arrived.synchronize()
            if not verdict.finite.item():
                self._pending.clear()
                _stop(verdict.evidence)


def first_nonfinite(norms: Tensor, names: Sequence[str]) -> str | None:
    """Name of the first gradient whose norm is not finite; None if only their sum overflowed."""
    bad = (~torch.isfinite(norms)).nonzero().flatten().tolist()
    return names[bad[0]] if bad else None


def _stop(evidence: Evidence) -> NoReturn:
    update, epoch, batch = evidence.where
    parameter = first_nonfinite(evidence.norms, evidence.names)
    losses = [bool(torch.isfinite(loss)) for loss in evidence.losses]
    if not all(losses):
        batch = batch - len(losses) + 1 + losses.index(False)
        cause = "the loss was not finite already"
    elif not bool(evidence.total > 0):
        cause = "the count beside the loss is 0, so it is a mean over nothing"
    else:
        cause = "the loss was finite"
    what = f"of {parameter!r}" if parameter else "norm"
    raise NonFiniteError(
        f"update {update + 1}: the gradient {what} is not finite (epoch {epoch + 1}, "
        f"batch {batch + 1}; {cause}): lower the lr, clip the gradient, check this batch for NaN, "
        "or write nonfinite='skip' to leave such updates out",
        update=update,
        epoch=epoch,
        batch=batch,
        parameter=parameter,
    )
