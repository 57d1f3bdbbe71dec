"""Updates between samples, in as few steps as possible.

Of every update it is asked whether the loss and a small gradient are finite, and how large they
are. While updates are like the ones before them, the patches ask this themselves and note two
numbers here. All other updates, and one in many of these, go to the non-finite monitor and the
training monitor.

What costs time is the amount of code that runs rather than its work: little of it is in the
processor's caches between two updates of the program. So what can wait is done when this ends.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

from trueloop.doctor.live.training.update_history import TOGETHER, until_next_stand

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import Hub
    from trueloop.doctor.live.nonfinite.monitor import NonFiniteMonitor
    from trueloop.doctor.live.sampling_schedule import SamplingSchedule
    from trueloop.doctor.live.timing.step_timer import StepTimer
    from trueloop.doctor.live.training.monitor import TrainingMonitor
    from trueloop.doctor.live.training.update_history import UpdateHistory


class UnsampledUpdates:
    """Of one watcher. It is left as soon as anything else happens than backwards and steps of one
    optimizer: what was noted is then where the two monitors would have put it."""

    __slots__ = (
        "_follows", "_health", "_hub", "_progress", "_sampling", "_stream", "_timer", "ends",
        "left", "limit", "numbers", "on", "open", "optimizer", "parameter", "sizes", "thread",
    )  # fmt: skip

    def __init__(
        self,
        hub: Hub,
        sampling: SamplingSchedule,
        timer: StepTimer,
        health: NonFiniteMonitor,
        progress: TrainingMonitor,
    ) -> None:
        hub.unsampled = self
        self._hub, self._sampling, self._timer = hub, sampling, timer
        self._health, self._progress = health, progress
        self._stream: UpdateHistory | None = None
        self._follows = False
        self.on = False
        """Read by the patches."""
        self.thread = 0
        """The one that trains."""
        self.parameter: Any = None
        """A weak reference to a small parameter, or to nothing."""
        self.limit = 0.0
        """Of the square of its gradient's norm, above which more is asked."""
        self.optimizer: Any = None
        """A weak reference."""
        self.numbers: list[float] = []
        """The loss of each backward."""
        self.sizes: list[float] = []
        """The square of the small gradient's norm after each, where there is one."""
        self.ends: list[int] = []
        """How many backwards there had been at each update."""
        self.open = False
        """There was one since."""
        self.left = 0
        """Updates that are noted here at most."""

    def leave(self) -> None:
        """Something else happens: hand on what was noted."""
        if not self.on:
            return
        self.on = False
        stream, begin = self._stream, 0
        assert stream is not None
        for end in self.ends:
            numbers = self.numbers[begin:end]
            stream.losses.append(numbers[0] if len(numbers) == 1 else _mean(numbers))
            begin = end
        if self._follows:
            stream.squares += [self.sizes[end - 1] for end in self.ends]
        stream.updates += len(self.ends)
        self._health.recent.extend(self.numbers)
        if self.open:  # its update is still to come
            for each in self.numbers[begin:]:
                self._progress.add(each)
            if self.sizes:
                self._health.small = (self.parameter, self.sizes[-1])

    def begin(self) -> None:
        """An update was made: note the ones to come, if they can be expected to be as it was."""
        hub, health, progress = self._hub, self._health, self._progress
        stream, calls = progress.stream, health.calls
        if (
            stream is None
            or hub.sampling
            or hub.multithreaded
            or self._timer.on
            or not (hub.active and hub.checks_finite and hub.follows_training)
            or health.pending is not None
            or calls.holds
            or calls.raws
            or not (hub.training_thread == calls.thread == get_ident())
            or stream.mixed
            or stream.odd
            or stream.jumps.pending is not None
            or stream.evaluations.open
        ):
            return
        parameter = health.sentinel()
        if stream.small is None or stream.small() is not parameter:
            return
        follows = not stream.doubtful and not stream.jumps.over and parameter is not None
        ends = [self._sampling.next_at, self._timer.next]
        if self._sampling.limit is not None:
            ends.append(self._sampling.limit)
        self.left = min(
            until_next_stand(stream.updates),
            TOGETHER - 1 - max(len(stream.losses), len(stream.squares)),
            min(ends) - 1 - hub.updates,
            stream.jumps.due - 1 - stream.updates if follows else TOGETHER,
        )
        self.numbers, self.sizes, self.ends, self.open = [], [], [], False
        self.thread = get_ident()
        self.parameter, self.optimizer = health.sentinel, stream.optimizer
        self.limit = stream.jumps.limit
        self._stream, self._follows = stream, follows
        self.on = self.left > 0


def _mean(numbers: list[float]) -> float:
    total = 0.0
    for each in numbers:  # one by one, as `TrainingMonitor` adds them up
        total += each
    return total / len(numbers)
