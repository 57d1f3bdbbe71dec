"""Modules whose parameters are frozen as a whole, while source is read."""

from __future__ import annotations

import re

from trueloop.doctor.model.events import EscapedToUnknown, FlagsSet, Made, Replaced
from trueloop.doctor.model.things import Model
from trueloop.doctor.rules.base import Rule

_PARAMETERS = re.compile(r"(getattr\([\w., \[\]'\"]+\)|[\w.\[\]]+)\.parameters\(\)")


class FrozenModules(Rule):
    """Keeps the events that freeze a whole module, unconditionally, until it is thawed."""

    reads_names = False
    """Parameters that were frozen by their names count."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen: list[FlagsSet] = []
        self.gradual = False
        """The training loop thaws something: of its turns, the reader goes through a few."""
        self._born: dict[Model, int] = {}
        self._parts: dict[FlagsSet, frozenset[Model]] = {}
        """The modules inside of one that was frozen, at that time."""
        self._thawed: dict[FlagsSet, set[Model]] = {}
        """Those of them that have got gradients since, in part or whole."""

    def on_made(self, event: Made) -> None:
        if isinstance(event.thing, Model):
            self._born[event.thing] = event.serial

    def on_flags_set(self, event: FlagsSet) -> None:
        if event.by_name and not self.reads_names:
            return
        if event.requires_grad is False:
            if not event.guards and not event.thawed_later and _is_whole(event):
                self.frozen.append(event)
                self._parts[event] = frozenset(event.model.family())
        else:
            self._thaw_part(event.model)
            self.gradual |= any(turn.loop.kind != "other" for turn in event.turns)

    def on_replaced(self, event: Replaced) -> None:
        if event.how != "assigned" or not isinstance(event.new, Model):
            self.thaw(event.model)  # a new module is known by when it was made

    def on_escaped_to_unknown(self, event: EscapedToUnknown) -> None:
        for thing in event.things:
            if isinstance(thing, Model):
                self.thaw(thing)

    def _thaw_part(self, model: Model) -> None:
        """The rest of what was frozen stays so: `model.requires_grad_(False)`, then its head."""
        frozen, self.frozen = self.frozen, []
        for each in frozen:
            inside = each.model is not model and each.model.covers(model)
            if inside and model.complete and model.known:
                thawed = [part for part in self._parts[each] if part.shares_parameters(model)]
                self._thawed.setdefault(each, set()).update(thawed)
            elif each.model.shares_parameters(model):
                continue
            self.frozen.append(each)

    def thaw(self, model: Model) -> None:
        """Something may have switched the gradients of a model's parameters on again."""
        self.frozen = [each for each in self.frozen if not each.model.shares_parameters(model)]

    def freezes(self, event: FlagsSet, part: Model) -> bool:
        """A module was there when the event froze what it belongs to."""
        if part in self._born and part not in self._parts[event]:
            return False  # it has come into the module since then
        if part in self._thawed.get(event, ()):
            return False
        return event.model.covers(part) and self._born.get(part, 0) < event.serial


def _is_whole(event: FlagsSet) -> bool:
    """It is one call, or the whole body of a loop over `parameters()`."""
    loop = event.turns[-1].loop if event.turns else None
    return event.whole or (
        loop is not None
        and event.place.function == loop.place.function
        and loop.lines == 1
        and _PARAMETERS.fullmatch(str(loop.over)) is not None
    )
