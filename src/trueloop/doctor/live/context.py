"""The questions that probes, monitors and the step timer may ask about the watched program."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    import threading

    from trueloop.doctor.live.objects.provenance import Registrations
    from trueloop.doctor.live.objects.registry import ObjectRegistry
    from trueloop.doctor.live.track import Track
    from trueloop.doctor.model.measurements import Measured


class Context(Protocol):
    """One watched process, as a probe sees it."""

    things: ObjectRegistry
    registrations: Registrations

    @property
    def updates(self) -> int:
        """Steps of optimizers until now."""
        ...

    @property
    def reading(self) -> threading.RLock:
        """Held while gradients are read that a second thread might write."""
        ...

    @property
    def cut(self) -> bool:
        """Nothing is to be concluded from what the program has not done."""
        ...

    def track(self) -> Track:
        """Where this thread of the program is."""
        ...

    def measure(self, measured: Measured) -> None:
        """Hand a measurement to the rules."""
        ...

    def failed(self, error: Exception) -> None:
        """Something of ours has failed; the program must not notice."""
        ...
