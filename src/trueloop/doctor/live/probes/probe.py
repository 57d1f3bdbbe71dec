"""Probes: what they read off the running program no single event says.

A probe hears of moments while the watcher samples; what it finds out it emits as a
measurement.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.events import Event


class Probe:
    """Overrides the moments that it asks for. None of them may change what the program computes:
    no draw of random numbers, nothing in place, no strong reference to a tensor of the program."""

    def __init__(self, watcher: Context) -> None:
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
        """An optimizer was made; called even outside of sampled updates."""

    def unwatched(self) -> None:
        """The watcher looks away: what was open may continue in any way."""
