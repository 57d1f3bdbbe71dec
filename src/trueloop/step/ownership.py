"""Who trains which parameter: found out at a step's first update, from the gradients that it has.

A layer that was replaced after the optimizer was made gets gradients and never changes. Nothing
raises; the model trains on without that layer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakSet

from torch import nn

from trueloop.errors import ConfigError
from trueloop.step.accumulate import Gradients

_LISTED = 3
"""Parameters that a message lists by name."""
_BUILD = "build the optimizer from model.parameters()"
_BUILD_SEVERAL = "build the optimizers so that each parameter is in one of them,"


class Ownership:
    """The parameters of a model and those that its optimizers hold, checked once.

    Parameters that the optimizer of a different live step holds (the other half of a GAN in one
    module) are trained there.
    """

    _alive: ClassVar[WeakSet[Ownership]] = WeakSet()

    def __init__(self, model: nn.Module, gradients: Gradients, optimizers: int = 1) -> None:
        self._model = model
        self._gradients = gradients
        self._several = optimizers > 1
        self._unowned: list[tuple[str, nn.Parameter]] = []
        self.is_checked = False
        self._alive.add(self)

    def _held(self) -> set[int]:
        return {id(parameter) for parameter in self._gradients.held}

    def begin(self) -> None:
        """Before the first forward: note the parameters that the optimizer does not have and that
        have no gradient yet."""
        held = self._held()
        self._unowned = [
            (name, parameter)
            for name, parameter in self._model.named_parameters()
            if parameter.requires_grad and parameter.grad is None and id(parameter) not in held
        ]

    def check(self) -> None:
        """After the first backward: raise `ConfigError` if a parameter of the model that no step's
        optimizer has got a gradient, or if one that the optimizer has and the model does not have
        got none."""
        self.is_checked = True
        # A copy: a second thread may make a step meanwhile.
        others = set[int]().union(*(one._held() for one in tuple(self._alive) if one is not self))
        untrained = [
            name
            for name, parameter in self._unowned
            if parameter.grad is not None and id(parameter) not in others
        ]
        self._unowned = []
        unused = [p for p in self._gradients.outside if p.requires_grad and p.grad is None]
        if not untrained and not unused:
            return
        several = self._several
        parts = []
        if untrained:
            parts.append(
                f"the loss depends on {_listed(untrained)}, and "
                + ("none of the optimizers has " if several else "the optimizer does not have ")
                + ("it" if len(untrained) == 1 else "them")
            )
        if unused:
            shapes = [str(tuple(parameter.shape)) for parameter in unused]
            parts.append(
                f"{'an' if several else 'the'} optimizer has {_counted(len(unused))} outside the "
                f"model without a gradient (of shape {_listed(shapes)})"
            )
        raise ConfigError(
            "; ".join(parts)
            + f": {_BUILD_SEVERAL if several else _BUILD} after the model has its final layers. "
            "If it is meant: freeze such a parameter with requires_grad_(False), or train it with "
            "a separate Step, made before the first update"
        )


def _counted(number: int) -> str:
    return "1 parameter" if number == 1 else f"{number} parameters"


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(names[:_LISTED])
    return shown + (f" and {len(names) - _LISTED} more" if len(names) > _LISTED else "")
