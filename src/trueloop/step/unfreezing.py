"""Parts of a model that are frozen at first, and trained from a place in the run on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import nn

from trueloop import _options
from trueloop.errors import ConfigError, nearest
from trueloop.step import sharding
from trueloop.step.schedule import Length, Plan, check_length, parse_length


@dataclass
class _Part:
    name: str
    parameters: list[nn.Parameter]
    length: Length
    updates: int | None = None
    """For a share of the run: the updates before it is trained, once the plan is known."""
    is_frozen: bool | None = None


class Unfreezing:
    """The parts that `Step(unfreeze=...)` names, frozen and trained as the counters say.

    Whether a part is frozen is a function of the epochs and updates done, so that a resumed run has
    the same parts. The optimizer has all of them from the start: it keeps no state of a parameter
    without a gradient, and a schedule treats its group as the others.
    """

    def __init__(
        self, model: nn.Module, held: Sequence[nn.Parameter], given: Mapping[str, Length]
    ) -> None:
        _check(model, given)
        self._model = model
        owned, modules = {id(p) for p in held}, dict(model.named_modules())
        self._parts: list[_Part] = []
        for name, length in given.items():
            named = list(modules[name].named_parameters(name))
            for path, parameter in named:
                if id(parameter) not in owned:
                    raise ConfigError(
                        f"unfreeze names {name!r}, and the optimizer does not have {path!r}: make "
                        "the optimizer from the whole model, without requires_grad_(False); the "
                        "step freezes what unfreeze names"
                    )
            self._parts.append(_Part(name, [p for _, p in named], length))
        self.described = ", ".join(f"{part.name}: {part.length}" for part in self._parts)
        """The names and times, which a resumed run must share."""
        self.refresh(0, 0)

    def plan(self, plan: Plan) -> None:
        """Take the length of the run, which shares of it need."""
        whole = plan.ticks("update")
        for part in self._parts:
            amount, unit = parse_length(part.length)
            if unit == "share" and whole is not None:
                part.updates = round(amount * whole)

    def check_planned(self) -> None:
        """Raise `ConfigError` for a share of a run whose length is not known."""
        for part in self._parts:
            if part.updates is None and parse_length(part.length)[1] == "share":
                raise ConfigError(
                    f"unfreeze={{{part.name!r}: {part.length!r}}} is a share of the run, whose "
                    "length is not known: call step.plan(epochs=..., batches=len(train)) before "
                    "the first batch, or write '2 epochs'"
                )

    def begin(self, epoch: int, updates: int) -> None:
        """At the beginning of a window: `refresh`, once the length of the run is known."""
        self.check_planned()
        self.refresh(epoch, updates)

    def refresh(self, epoch: int, updates: int) -> None:
        """Freeze and unfreeze as it is after so many epochs and updates."""
        has_changed = False
        for part in self._parts:
            is_frozen = not self._is_due(part, epoch, updates)
            if is_frozen is not part.is_frozen:
                has_changed, part.is_frozen = True, is_frozen
                for parameter in part.parameters:
                    parameter.requires_grad_(not is_frozen)
        if has_changed:
            sharding.take_in_trained(self._model)

    @staticmethod
    def _is_due(part: _Part, epoch: int, updates: int) -> bool:
        amount, unit = parse_length(part.length)
        if unit == "epochs":
            return epoch >= amount
        if unit == "share":
            return part.updates is not None and updates >= part.updates
        return updates >= amount


def unfreezing(model: nn.Module, held: Sequence[nn.Parameter], given: Any) -> Unfreezing | None:
    """The parts that `Step(unfreeze=...)` names; `ConfigError` for what cannot be."""
    return None if given is None else Unfreezing(model, held, given)


def _check(model: nn.Module, given: Any) -> None:
    if not isinstance(given, Mapping) or not given:
        raise ConfigError(
            f"unfreeze={_options.shown(given)} is not a dict of names of modules and times: write "
            "unfreeze={'backbone': '2 epochs'}"
        )
    known = [name for name, _ in model.named_modules() if name]
    for name, length in given.items():
        if name not in known:
            raise ConfigError(
                f"unfreeze names {_options.shown(name)}, and the model has no such module: "
                + nearest(str(name), known)
            )
        check_length(f"unfreeze[{name!r}]", length)
        if not isinstance(length, int) and parse_length(length)[1] == "epochs":
            amount = parse_length(length)[0]
            if amount % 1:
                raise ConfigError(
                    f"unfreeze[{name!r}]={length!r} is not a whole number of epochs: write "
                    "'2 epochs' or '300 updates'"
                )
