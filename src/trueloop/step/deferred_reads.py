"""Values that travel from an accelerator to the host, and are read some updates later."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, NamedTuple, TypeVar

import torch
from torch import Tensor

from trueloop.ranks import is_distributed

T = TypeVar("T")

LAG = 2
"""Updates after which many ranks read a value: the same number on each of them."""


class _Sent(NamedTuple, Generic[T]):
    value: Tensor
    arrived: torch.cuda.Event | None
    about: T


class DeferredReads(Generic[T]):
    """A queue of such values, oldest first: no update makes the device wait for the host.

    In one process a value is read as soon as it has arrived. Many ranks must do the same at the
    same update, so there it is read when `LAG` updates have followed it: by then it has arrived
    where the host does not run further ahead than that, and else the host waits for it. Without
    `alike` a rank reads for itself, and none of many waits.
    """

    def __init__(self, *, alike: bool = True) -> None:
        self._alike = alike
        self.sent: list[_Sent[T]] = []
        """Those that have not been read."""

    def send(self, value: Tensor, about: T) -> None:
        """Start a value on its way to the host; `about` comes back with it."""
        if not value.is_cuda:
            self.sent.append(_Sent(value, None, about))
            return
        # Such a copy goes to pinned memory, and may be read once the event has passed.
        copy = value.to("cpu", non_blocking=True)
        arrived = torch.cuda.Event()  # type: ignore[no-untyped-call]
        arrived.record(torch.cuda.current_stream(value.device))
        self.sent.append(_Sent(copy, arrived, about))

    def due(self, *, wait: bool = False) -> Iterator[tuple[Tensor, T]]:
        """The values that may be read now (with `wait`: all), each once. Call it once per
        update."""
        while self.sent and (wait or self._is_due(self.sent[0])):
            value, arrived, about = self.sent.pop(0)
            if arrived is not None:
                arrived.synchronize()
            yield value, about

    def clear(self) -> None:
        self.sent.clear()

    def _is_due(self, oldest: _Sent[T]) -> bool:
        if self._alike and is_distributed():
            return len(self.sent) >= LAG
        return oldest.arrived is None or bool(oldest.arrived.query())  # type: ignore[no-untyped-call]
