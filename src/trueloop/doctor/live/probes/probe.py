"""Probes: what they read off the running program no single event says.

A probe is told of moments while the watcher looks; what it finds out it emits as a
measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from trueloop.doctor.live.timing.step_timing import OWN
from trueloop.doctor.live.tracing import dispatch_modes, no_torch_dispatch, no_torch_function

if TYPE_CHECKING:
    from trueloop.doctor.live.watcher import Watcher
    from trueloop.doctor.model.events import Event


class Probe:
    """Overrides the moments that it asks for. None of them may change what the program computes:
    no draw of random numbers, nothing in place, no strong reference to a tensor of the program."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher

    def entered(self, module: Any, given: Any, outer: list[Any]) -> None:
        """A module is about to be called, the last of `outer`; `given` is `args`."""

    def called(self, module: Any, outer: list[Any], output: Any) -> None:
        """A module inside of others (outermost first) was called."""

    def after_forward(self, module: Any, given: Any, output: Any, event: Event) -> None:
        """A module was called from outside; `given` is `(args, kwargs)`."""

    def lost(self, given: Any, output: Any, event: Event) -> None:
        """A loss function was called; `given` has its arguments by name."""

    def before_backward(self, tensors: Any, event: Event, frame: Any) -> None: ...

    def after_backward(self, frame: Any) -> None: ...

    def before_step(self, optimizer: Any, frame: Any) -> None: ...

    def after_step(self, optimizer: Any, event: Event, frame: Any) -> None: ...

    def fetched(self, batch: Any, event: Event) -> None:
        """A loader gave a batch."""

    def summed(self, name: str, tensor: Any, frame: Any) -> None:
        """A collective of torch's was called with a tensor: `all_reduce`, `broadcast`."""

    def made(self, optimizer: Any, frame: Any) -> None:
        """An optimizer was made; told even while nobody looks."""

    def unwatched(self) -> None:
        """The watcher looks away: what was open may go on in any way."""


class Probes:
    """All probes of one watcher."""

    def __init__(self, watcher: Watcher) -> None:
        self._watcher = watcher
        self.all = [*(kind(watcher) for kind in _kinds()), watcher.progress]
        self._told: dict[str, list[Callable[..., None]]] = {}

    def tell(self, moment: str, *details: Any) -> None:
        """Tell those that ask for a moment; no error of theirs reaches the program."""
        try:
            self._tell(self._told.get(moment) or self._who_asks(moment), details)
        except Exception as error:
            self._watcher.failed(error)

    def _tell(self, told: list[Callable[..., None]], details: Any) -> None:
        with self._watcher.reading:
            if self._watcher.crowded:
                return
            clock = self._watcher.clock
            timed = clock.on and clock.enter(OWN)
            try:
                with no_torch_function():
                    if not dispatch_modes():
                        self._ask(told, details)
                    else:
                        with no_torch_dispatch():
                            self._ask(told, details)
            finally:
                if timed:
                    clock.leave(OWN)

    def _ask(self, told: list[Callable[..., None]], details: Any) -> None:
        for ask in told:
            try:
                ask(*details)
            except Exception as error:  # whatever it is, the program goes on
                self._watcher.failed(error)

    def _who_asks(self, moment: str) -> list[Callable[..., None]]:
        plain = getattr(Probe, moment)
        told = self._told[moment] = [
            getattr(each, moment) for each in self.all if getattr(type(each), moment) is not plain
        ]
        return told


def _kinds() -> list[type[Probe]]:
    from trueloop.doctor.live.memory import recorded_shapes
    from trueloop.doctor.live.probes import (
        data,
        idle_parameters,
        losses,
        memory_growth,
        muon_parameters,
        pairwise_losses,
        predictions,
        replicas,
        retained_graphs,
        untracked_parameters,
        update_rounding,
    )

    return [
        *losses.PROBES,
        *data.PROBES,
        untracked_parameters.Strays,
        idle_parameters.Updates,
        retained_graphs.Kept,
        predictions.Predictions,
        update_rounding.Rounding,
        memory_growth.Growth,
        recorded_shapes.Recipes,
        replicas.Replicas,
        pairwise_losses.Pairs,
        muon_parameters.Matrices,
    ]
