"""Sampling: a model without gradients gets, turn after turn, what it has given itself."""

from __future__ import annotations

from collections.abc import Iterator

from trueloop.doctor.model.events import ModelForward
from trueloop.doctor.model.things import Loop


class SamplingPasses:
    """The forwards of a run that continue what an earlier turn's forward has begun."""

    def __init__(self) -> None:
        self._by_serial: dict[int, ModelForward] = {}
        self._continued: list[tuple[ModelForward, Loop]] = []
        self._with_graph: list[ModelForward] = []

    def add(self, event: ModelForward, *, awake: bool) -> None:
        """Note a forward. `awake`: in train mode, which nobody has just asked for."""
        if any(each.function.endswith("__init__") for each in (event.place, *event.stack)):
            return  # a constructor asks its layers for the shape of their outputs
        if event.grad or not event.grad_known:
            if event.fed_by:
                self._with_graph.append(event)
            return
        if awake:
            self._by_serial[event.serial] = event
        earlier = (self._by_serial.get(serial) for serial in event.fed_by)
        for each in earlier:
            if each is not None and each.model.shares_parameters(event.model):
                loop = _loop_between(each, event)
                if loop is not None:
                    self._continued.append((each, loop))

    def passes(self, used: set[int]) -> Iterator[tuple[ModelForward, Loop]]:
        """The first forward of each loop that samples, unless something trains on its samples.
        `used`: the forwards that a gradient is taken of."""
        trained_on = [each.fed_by for each in self._with_graph if each.serial in used]
        seen: set[Loop] = set()
        for forward, loop in self._continued:
            wanted = any(forward.serial in each for each in trained_on)
            if loop not in seen and not wanted:
                seen.add(loop)
                yield forward, loop


def _loop_between(first: ModelForward, second: ModelForward) -> Loop | None:
    """The loop of which one forward is in a turn, and the other in a later one."""
    for one, two in zip(first.turns, second.turns, strict=False):
        if one.loop is not two.loop:
            return None
        if one.index != two.index:
            return one.loop
    return None
