"""Updates between two looks, in as few steps as can be.

What is asked of every update (is the loss finite, is a small gradient, and how large are they) is
asked here of those that are as the ones before them. Of all others, and of one in a few of these,
`Health` and `Progress` ask it themselves.
"""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING, Any

from torch import Tensor, dot

from trueloop.doctor.runtime.probes.progress import EVERY
from trueloop.doctor.runtime.probes.streams import TOGETHER
from trueloop.doctor.runtime.tracing import dispatch_modes, function_modes, is_transformed

if TYPE_CHECKING:
    from trueloop.doctor.runtime.probes.streams import Stream
    from trueloop.doctor.runtime.watcher import Watcher


class Between:
    """Notes the next `left` updates of one optimizer where `Health` and `Progress` would have noted
    them. It is given up as soon as anything else happens: `Watcher.between` is then None."""

    __slots__ = (
        "_follows", "_health", "_limit", "_number", "_parameter", "_progress", "_stream", "_thread",
        "_watcher", "left",
    )  # fmt: skip

    def __init__(self, watcher: Watcher, stream: Stream, left: int) -> None:
        health, jumps = watcher.health, stream.jumps
        self.left = left
        self._watcher, self._health, self._progress = watcher, health, watcher.progress
        self._stream = stream
        self._parameter = health.sentinel
        self._thread = health.calls.thread
        self._follows = not stream.doubtful and not jumps.over and health.sentinel() is not None
        """The sizes of the small gradient are noted."""
        self._limit = jumps.limit
        self._number = 0.0

    def takes(self, args: Any) -> bool:
        """A backward of this kind can be noted here, and its loss is finite: it is read."""
        loss = args[0] if args else None
        if (
            type(loss) is not Tensor
            or not loss.is_cpu
            or loss.numel() != 1
            or get_ident() != self._thread
            or dispatch_modes()
            or function_modes()
            or is_transformed()
        ):
            return False
        self._number = number = loss.item()
        return number - number == 0

    def notes(self) -> bool:
        """Note a backward that was taken, unless its gradient stands out or cannot be read."""
        parameter = self._parameter()
        if parameter is not None:
            gradient = parameter.grad
            if type(gradient) is not Tensor or gradient.requires_grad:
                return False
            size = dot(gradient, gradient).item()
            if not size < self._limit:
                return False
            self._health.small = (self._parameter, size)
        self._progress.add(self._number)
        self._health.recent.append(self._number)
        return True

    def stepped(self, optimizer: Any) -> bool:
        """An optimizer has stepped; False where more has to be asked about that."""
        watcher, stream = self._watcher, self._stream
        loss = self._progress.take() if optimizer is stream.optimizer() else None
        self.left -= 1
        if loss is None or not self.left:
            watcher.between = None
        if loss is None:
            return False
        if self._follows:
            stream.squares.append(self._health.small[1])  # type: ignore[index]
        self._health.small = None
        stream.losses.append(loss)
        stream.updates += 1
        watcher.updates += 1
        return True


def between(watcher: Watcher) -> Between | None:
    """For the updates to come, if they can be expected to be as the last one."""
    health, stream, calls = watcher.health, watcher.progress.stream, watcher.health.calls
    if (
        stream is None
        or watcher.looking
        or watcher.crowded
        or watcher.clock.on
        or not (health.on and watcher.progress.on)
        or health.pending is not None
        or calls.holds
        or calls.raws
        or not (watcher.trainer == calls.thread == get_ident())
        or stream.mixed
        or stream.odd
        or stream.jumps.pending is not None
        or stream.evaluations.open
    ):
        return None
    parameter = health.sentinel()
    if stream.small is None or stream.small() is not parameter:
        return None
    follows = not stream.doubtful and not stream.jumps.over and parameter is not None
    ends = [watcher.mark, watcher.clock.next, *([] if watcher.first is None else [watcher.first])]
    left = min(
        -stream.updates % EVERY,
        TOGETHER - 1 - max(len(stream.losses), len(stream.squares)),
        min(ends) - 1 - watcher.updates,
        stream.jumps.due - 1 - stream.updates if follows else EVERY,
    )
    return Between(watcher, stream, left) if left > 0 else None
