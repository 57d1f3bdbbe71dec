"""Micro-batch windows whose gradient is the gradient of their union.

The mean over a union of micro-batches with losses L_i (means over n_i samples or tokens) is
sum(n_i L_i) / sum(n_i). The denominator is known only when the window closes, so each micro-batch
is weighted by n_i / (size · n_1), which is exactly 1/size for equal micro-batches, as a loop by
hand would do it, and what a ragged or short window leaves over, size · n_1 / sum(n_i), is applied
once to the gradient at the end.

Beside its counts, a window has its own gradients, kept apart from everybody else's.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trueloop import _options
from trueloop.device import is_immediate
from trueloop.records import LossOutput, resolve_count
from trueloop.shapes import COUNT, FINITE, SCALAR, DictOf, ListOf, Maybe, OneOf, TupleOf, Where

Number = int | float | Tensor


_NUMBER = OneOf(FINITE, SCALAR)


class MicroBatchWindow:
    """The micro-batches of one update, from its first `add` to `close`."""

    STATE = Where(
        {
            "micro_batches": COUNT,
            "samples": COUNT,
            "tokens": Maybe(COUNT),
            "losses": ListOf(SCALAR),
            "first": _NUMBER,
            "total": _NUMBER,
            "weighted": _NUMBER,
            "parts": DictOf(str, TupleOf(SCALAR, OneOf(None, _NUMBER))),
        },
        lambda state: (
            len(state["losses"]) == state["micro_batches"]
            and (state["micro_batches"] < 2 or isinstance(state["weighted"], Tensor))
        ),
        "a window with a loss for each micro-batch",
    )
    """The form of the state that `load_state_dict` takes."""

    def __init__(self, size: int) -> None:
        self.size = _options.whole("accumulate", size, 1, 4)
        self.close()

    def close(self) -> None:
        """Empty the window for the next update."""
        self.micro_batches = 0
        self.kept = 0
        """Micro-batches that a state has, or an interrupted `fit` leaves to the next one."""
        self.samples = 0
        self.tokens = 0
        self.losses: list[Tensor] = []
        self._first: Number = 0
        self.total: Number = 0
        """The samples, tokens or weights that the window's mean loss is over."""
        self.is_weightless = False
        """The last micro-batch is known to count for nothing."""
        self.mean: Tensor | None = None
        """The mean loss of all ranks, once it is summed; None in one process."""
        self._weighted: Number = 0.0
        self._parts: dict[str, tuple[Tensor, Number | None]] = {}
        """Per name, the sum of part times count, and the sum of counts (None: the part itself)."""

    @property
    def is_open(self) -> bool:
        return self.micro_batches > 0

    def refresh_names(self) -> None:
        """Before a window's first batch: agree with the other ranks, where there are any."""

    def begin_sum(self) -> None:
        """Start the sum over all ranks, where there are others."""

    def finish_sum(self) -> None:
        """Take over what all ranks have together, where there are others."""

    def agreed(self) -> dict[str, Any] | None:
        """The window that all ranks have agreed on for the whole run; None in one process."""
        return None

    def load_agreed(self, state: dict[str, Any] | None) -> None:
        """Load what `agreed` returned; in one process nothing depends on it."""

    def add(self, output: LossOutput, samples: int, stand_in: bool = False) -> Tensor:
        """Take in one micro-batch's mean loss and its parts; returns the loss to call backward on.

        A stand-in counts for nothing. Raises `LossError` for a count that is not a number from 0
        on.
        """
        if stand_in:
            output = LossOutput(output.loss, 0)
        loss, count = output.loss, output.count
        self.micro_batches += 1
        self.samples += samples
        self.losses.append(loss.detach())
        if self.size == 1:
            # The only micro-batch has the whole weight: a callable need not be asked for it.
            self.total = samples if count is None or callable(count) else count
            if output.parts:
                self._parts = {name: (part, None) for name, part in output.parts.items()}
            return loss
        n = resolve_count(count, samples)
        self.is_weightless = is_zero(n)
        if isinstance(n, Tensor):
            # A quotient of integers would be float32 whatever the loss is.
            wide = torch.promote_types(loss.dtype, torch.float32)
            n = n.detach().reshape(()).to(loss.device, wide)
        if self.micro_batches == 1:
            self._first = n
        self.total = self.total + n
        self._weighted = self._weighted + times(loss.detach(), n)
        for name, part in output.parts.items():
            total, weight = self._parts.get(name, (0.0, 0))
            self._parts[name] = (total + times(part, n), (weight or 0) + n)
        reference = self._reference()
        if isinstance(n, Tensor) or isinstance(reference, Tensor):
            return loss * (n / (self.size * reference))
        return loss / self.size if n == reference else loss * (n / (self.size * reference))

    @property
    def reference(self) -> Number:
        """The total that the micro-batches of an open window are weighted against."""
        return self._reference()

    def _reference(self) -> Number:
        """The first micro-batch's count, or 1 if that was 0 (every target of it ignored)."""
        first = self._first
        if isinstance(first, Tensor):
            return torch.where(first > 0, first, torch.ones_like(first))
        return first if first > 0 else 1

    def correction(self) -> float | Tensor:
        """The factor that the summed gradient still needs: 1.0 for a full, even window.

        NaN where the counts add up to 0: a mean over nothing is not a number, and neither is its
        gradient.
        """
        total = self.total
        if isinstance(total, Tensor) and not is_immediate(total.device):
            factor = 1.0 if self.size == 1 else self.size * self._reference() / total
            return torch.where(total > 0, factor, math.nan)
        if not total > 0:
            return math.nan
        return 1.0 if self.size == 1 else self.size * self._reference() / total

    def means(self) -> tuple[Tensor, dict[str, Tensor]]:
        """The mean loss and its named parts over the window so far: detached scalars.

        A part that some micro-batches do not have is the mean over those that have it.
        """
        if len(self.losses) == 1:
            loss = self.losses[0]
        else:
            assert isinstance(self._weighted, Tensor)
            loss = self._weighted / self.total
        if not self._parts:
            return loss, {}
        return loss, {
            name: total if weight is None else total / weight
            for name, (total, weight) in self._parts.items()
        }

    def state_dict(self) -> dict[str, Any]:
        self.kept = self.micro_batches
        return {
            "micro_batches": self.micro_batches,
            "samples": self.samples,
            "tokens": self.tokens,
            "losses": list(self.losses),
            "first": self._first,
            "total": self.total,
            "weighted": self._weighted,
            "parts": {name: list(part) for name, part in self._parts.items()},
        }

    def load_state_dict(self, state: dict[str, Any], device: torch.device) -> None:
        """Load what `state_dict` returned, its tensors on `device`, where the losses are."""

        def here(number: Any) -> Any:
            return number.to(device) if isinstance(number, Tensor) else number

        self.micro_batches = state["micro_batches"]
        self.samples = state["samples"]
        self.tokens = state.get("tokens", 0)
        self.losses = [loss.to(device) for loss in state["losses"]]
        self._first, self.total = here(state["first"]), here(state["total"])
        self._weighted = here(state["weighted"])
        self._parts = {
            name: (total.to(device), here(weight))
            for name, (total, weight) in state["parts"].items()
        }


def times(loss: Tensor, n: Number) -> Tensor:
    """loss · n in float32 at least; 0 where n is, though a mean over nothing may be NaN."""
    wide = loss.to(torch.promote_types(loss.dtype, torch.float32))
    if isinstance(n, Tensor):
        return torch.where(n > 0, wide * n, torch.zeros_like(wide))
    return wide * n if n else torch.zeros_like(wide)


def is_zero(n: Number) -> bool:
    """Whether a count is 0, as far as that is known without a wait."""
    return (not isinstance(n, Tensor) or is_immediate(n.device)) and float(n) == 0


PLAIN = {Tensor}
"""The types of gradients that are neither missing nor sharded (`DTensor`)."""
is_sparse = operator.attrgetter("is_sparse")
gradient_of = operator.attrgetter("grad")
_groups_of = operator.attrgetter("param_groups")
_params_of = operator.itemgetter("params")


class Gradients:
    """The gradients of the optimizers' parameters, in the model's order, as `clip_grad_norm_` would
    see them.

    Between the micro-batches of a window they are stashed: a different step's backward (a GAN's
    other half) may write to the same parameters meanwhile.
    """

    def __init__(self, model: nn.Module, optimizers: Sequence[Optimizer]) -> None:
        self._model = model
        self._optimizers = optimizers
        self._stashed: list[Tensor | None] = []
        self._collect()

    def _collect(self) -> None:
        self.held = self._in_optimizers()
        """The optimizers' parameters, in their own order."""
        held = {id(p) for p in self.held}
        named = [(name, p) for name, p in self._model.named_parameters() if id(p) in held]
        inside = {id(p) for _, p in named}
        self.outside = [p for p in self.held if id(p) not in inside]
        """Those that the model does not have."""
        named += [(f"parameter {k} outside the model", p) for k, p in enumerate(self.outside)]
        self.names = [name for name, _ in named]
        self.parameters = [p for _, p in named]

    def _in_optimizers(self) -> list[nn.Parameter]:
        return [
            p for one in self._optimizers for group in one.param_groups for p in group["params"]
        ]

    def refresh(self) -> None:
        """Look at the optimizers' parameters again."""
        # Once per update, over all parameters: without a Python loop over them.
        groups = itertools.chain.from_iterable(map(_groups_of, self._optimizers))
        now = list(map(_params_of, groups))
        if sum(map(len, now)) != len(self.held) or not all(
            map(operator.is_, itertools.chain.from_iterable(now), self.held)
        ):
            self._collect()

    def clear(self) -> None:
        """Set every gradient to None, and forget those that are stashed."""
        self._stashed = []
        for parameter in self.parameters:
            parameter.grad = None

    def stash(self) -> None:
        """Take the gradients off their parameters, out of the reach of any other backward."""
        stashed = [parameter.grad for parameter in self.parameters]
        self.clear()
        self._stashed = stashed

    def restore(self) -> None:
        """Put the stashed gradients back on their parameters."""
        for parameter, gradient in zip(self.parameters, self._stashed, strict=True):
            parameter.grad = gradient

    @property
    def stashed(self) -> list[Tensor | None]:
        """The stashed gradients, one for each of `parameters`."""
        return self._stashed or [None] * len(self.parameters)

    @stashed.setter
    def stashed(self, gradients: list[Tensor | None]) -> None:
        self._stashed = gradients

    def names_of(self, parameters: Sequence[Tensor]) -> list[str]:
        """The names of some of `parameters`."""
        wanted = {id(p) for p in parameters}
        found = zip(self.names, self.parameters, strict=True)
        return [name for name, p in found if id(p) in wanted]

    def dense(self) -> tuple[list[str], list[Tensor]]:
        """Names and gradients of the parameters that have one; of a sparse one, its values. Not to
        be written to."""
        found = list(map(gradient_of, self.parameters))
        if set(map(type, found)) == PLAIN and not any(map(is_sparse, found)):
            return self.names, found
        return self._found()

    def _found(self) -> tuple[list[str], list[Tensor]]:
        names, gradients = [], []
        for name, parameter in zip(self.names, self.parameters, strict=True):
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.is_sparse:
                # Rows that several samples touched are summed first; the values then are a view.
                parameter.grad = gradient.coalesce()
                gradient = parameter.grad.values()
            names.append(name)
            gradients.append(gradient)
        return names, gradients

    def state_dict(self) -> dict[str, Tensor]:
        """The stashed gradients by the names of their parameters."""
        stashed = zip(self.names, self._stashed, strict=True) if self._stashed else ()
        return {name: gradient for name, gradient in stashed if gradient is not None}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Load what `state_dict` returned, each gradient on its parameter's device."""
        self.clear()
        found = [state.get(name) for name in self.names]
        self._stashed = [
            None if gradient is None else gradient.detach().clone().to(p.device)
            for gradient, p in zip(found, self.parameters, strict=True)
        ]
