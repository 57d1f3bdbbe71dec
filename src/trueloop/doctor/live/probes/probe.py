"""Probes: what they read off the running program no single event says.

A probe hears of moments while the watcher samples; what it finds out it emits as a
measurement.
"""

from __future__ import annotations

from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.events import Event


class Probe:
    """Overrides the moments that it asks for. None of them may change what the program computes:
    no draw of random numbers, nothing in place, no strong reference to a tensor of the program."""

    def __init__(self, watcher: Context) -> None:
        self.watcher = watcher

    def entered(self, module: nn.Module, given: Any, outer: list[Any]) -> None:
        """A module is about to be called, the last of `outer`; `given` is `args`."""

    def called(self, module: nn.Module, outer: list[Any], output: object) -> None:
        """A module inside of others (outermost first) was called."""

    def after_forward(self, module: nn.Module, given: Any, output: object, event: Event) -> None:
        """A module was called from outside; `given` is `(args, kwargs)`."""

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        """A loss function was called; `given` has its arguments by name."""

    def before_backward(self, tensors: object, event: Event, frame: FrameType) -> None: ...

    def after_backward(self, frame: FrameType) -> None: ...

    def gradient_taken(self, event: Event, frame: FrameType) -> None:
        """`autograd.grad` was called for a result without a graph."""

    def before_step(self, optimizer: Optimizer, frame: FrameType) -> None: ...

    def after_step(self, optimizer: Optimizer, event: Event, frame: FrameType) -> None: ...

    def fetched(self, batch: object, event: Event) -> None:
        """A loader gave a batch."""

    def summed(self, name: str, tensor: torch.Tensor, frame: FrameType) -> None:
        """A collective of torch's was called with a tensor: `all_reduce`, `broadcast`."""

    def made(self, optimizer: Optimizer, frame: FrameType) -> None:
        """An optimizer was made; called even outside of sampled updates."""

    def unwatched(self) -> None:
        """The watcher looks away: what was open may continue in any way."""
