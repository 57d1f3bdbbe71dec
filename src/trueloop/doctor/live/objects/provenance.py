"""Where parameters came from: the line that registered them, what they took the place of, and
whether they were read from somewhere."""

from __future__ import annotations

import weakref
from types import FrameType
from typing import NamedTuple

import torch
from torch import nn

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.model.findings import Location

_DEEP = 12


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
        if child is None or old is None or old is child:
            return False
        if any(part is old for part in child.modules()):
            return False  # it continues inside of a wrapper
        self.modules.put(child, Registration(_sites(frame), True))
        self.displaced.put(old, weakref.ref(parent))
        return bool(self.loaded.get(old)) and not self.loaded.get(child)

    def read(self, module: nn.Module) -> None:
        """The weights of a module were put in from outside."""
        for part in module.modules():
            self.loaded.put(part, True)


def _sites(frame: FrameType) -> tuple[user_frames.Site, ...]:
    return tuple(each for each in user_frames.sites(frame)[-_DEEP:])
