"""Where parameters came from: the line that registered them, what they took the place of, and
whether they were read from somewhere."""

from __future__ import annotations

import weakref
from itertools import islice
from types import FrameType
from typing import NamedTuple

import torch
from torch import nn

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.model.findings import Location

_DEEP = 12
_FIRST = 256
"""Of a container's layers: enough to meet one that is repeated."""
_CONTAINERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class Registration(NamedTuple):
    """How a parameter, or a module, came to be where it is."""

    sites: tuple[user_frames.Site, ...]
    """The frames of the program then, outermost first."""
    replaces: bool
    """A different one was there."""
    trainable: bool = True
    """A parameter that required a gradient then."""

    @property
    def place(self) -> Location:
        return user_frames.user_place(list(self.sites))[0]


class Repeated(NamedTuple):
    """How a layer came to be in a second place of a container."""

    sites: tuple[user_frames.Site, ...]
    container: weakref.ref[nn.Module]


class Registrations:
    """Kept for parameters and modules by identity, as long as they live."""

    def __init__(self) -> None:
        self.parameters = WeakMap[Registration]()
        self.modules = WeakMap[Registration]()
        """Of modules that replaced other modules."""
        self.displaced = WeakMap[weakref.ref[nn.Module]]()
        """Modules whose place was taken."""
        self.loaded = WeakMap[bool]()
        """Modules whose weights were read, copied or unpickled."""
        self.repeated = WeakMap[Repeated]()
        """Layers with parameters that a container has in several places."""

    def parameter(
        self, module: nn.Module, name: str, parameter: torch.Tensor | None, frame: FrameType
    ) -> None:
        old = module._parameters.get(name)
        replaces = old is not None and old is not parameter
        trainable = parameter is not None and parameter.requires_grad
        self.parameters.put(parameter, Registration(_sites(frame), replaces, trainable))

    def module(
        self, parent: nn.Module, name: str, child: nn.Module | None, frame: FrameType
    ) -> bool:
        """Returns whether it takes the place of one whose weights were read."""
        old = parent._modules.get(name)
        if child is not None and isinstance(parent, _CONTAINERS) and old is not child:
            self._container(parent, child, frame)
        if child is None or old is None or old is child:
            return False
        if any(part is old for part in child.modules()):
            return False  # it continues inside of a wrapper
        self.modules.put(child, Registration(_sites(frame), True))
        self.displaced.put(old, weakref.ref(parent))
        return bool(self.loaded.get(old)) and not self.loaded.get(child)

    def _container(self, parent: nn.Module, child: nn.Module, frame: FrameType) -> None:
        """A container gets a layer that it may have already."""
        first = islice(parent._modules.values(), _FIRST)
        if not any(each is child for each in first) or self.repeated.get(child) is not None:
            return
        if any(True for _ in inspection.weights(child)):
            self.repeated.put(child, Repeated(_sites(frame), weakref.ref(parent)))

    def read(self, module: nn.Module) -> None:
        """The weights of a module were put in from outside."""
        for part in module.modules():
            self.loaded.put(part, True)


def _sites(frame: FrameType) -> tuple[user_frames.Site, ...]:
    return tuple(each for each in user_frames.sites(frame)[-_DEEP:])
