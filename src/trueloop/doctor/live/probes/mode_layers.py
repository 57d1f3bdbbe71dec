"""Whether a forward depends on the mode: something was called in it that does, or may have been."""

from __future__ import annotations

from functools import lru_cache
from types import FunctionType
from typing import Any

from torch import nn

from trueloop.doctor.live.context import Context
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.events import Event, ModelForward
from trueloop.doctor.model.vocabulary import MODE_DEPENDENT_LAYERS


class ModeLayers(Probe):
    """Notes on each forward from outside whether a dropout or a batch norm was called in it."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._leaves = 0
        self._called = False

    def entered(self, module: nn.Module, given: object, outer: list[Any]) -> None:
        self._leaves += 1
        self._called |= type(module).__name__ in MODE_DEPENDENT_LAYERS

    def after_forward(self, module: nn.Module, given: object, output: object, event: Event) -> None:
        assert isinstance(event, ModelForward)
        unseen = not self._leaves  # compiled, or nothing but functions
        event.heeds_mode = self._called or unseen or any(map(_asks, map(type, module.modules())))
        self.unwatched()

    def unwatched(self) -> None:
        self._leaves, self._called = 0, False


@lru_cache(maxsize=1024)
def _asks(kind: type[nn.Module]) -> bool:
    """A method of a class of modules, other than of a layer of dropout, reads `training`."""
    if kind.__name__ in MODE_DEPENDENT_LAYERS and kind.__module__.endswith(".dropout"):
        return False
    if kind.__module__.startswith(("torch._dynamo", "torch.jit", "torch.fx")):
        return True
    methods = [
        each
        for base in kind.__mro__[: kind.__mro__.index(nn.Module)]
        for each in vars(base).values()
        if isinstance(each, FunctionType)
    ]
    return any("training" in each.__code__.co_names for each in methods)
