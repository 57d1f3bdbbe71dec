"""Optimizers with modes, which are in train mode in a step and in eval mode around it.

A schedule-free optimizer (Defazio et al., "The road less scheduled", NeurIPS 2024) takes gradients
at one point, y, and the weights to use are a different one, the average x. The parameters are y in
train mode and x in eval mode; `optimizer.eval()` and `optimizer.train()` compute one from the
other, and round. So y is kept here meanwhile and put back bit by bit: to evaluate changes no run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from trueloop.step.loading import refuse


class Modes:
    """Those of a step's optimizers that have both `train()` and `eval()`, to call at any time."""

    def __init__(self, optimizers: Sequence[Optimizer]) -> None:
        self._optimizers: list[Any] = [each for each in optimizers if _has_modes(each)]
        self.any = bool(self._optimizers)
        """Whether there is such an optimizer."""
        self._kept: list[tuple[nn.Parameter, Tensor, int]] | None = None
        """In eval mode: each parameter, its value in train mode, and its version now."""

    @property
    def is_eval(self) -> bool:
        """Whether `eval` was called last."""
        return self._kept is not None

    def train(self) -> None:
        """Into train mode. Weights that nobody has changed since `eval` are what they were before
        it."""
        if not self.any:
            return
        kept, self._kept = self._kept, None
        same = [(p, value) for p, value, version in kept or () if p._version == version]
        for optimizer in self._optimizers:
            optimizer.train()
        with torch.no_grad():
            for parameter, value in same:
                parameter.copy_(value)

    def eval(self) -> None:
        """Into eval mode, until `train`."""
        if self.is_eval or not self.any:
            return
        self.train()  # it may be in eval mode by the user's own hand
        values = [(p, p.detach().clone()) for p in self._parameters()]
        for optimizer in self._optimizers:
            optimizer.eval()
        self._kept = [(p, value, p._version) for p, value in values]

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Within it eval mode; then the mode from before."""
        was_eval = self.is_eval
        self.eval()
        try:
            yield
        finally:
            if not was_eval:
                self.train()

    def _parameters(self) -> list[nn.Parameter]:
        return [
            p for one in self._optimizers for group in one.param_groups for p in group["params"]
        ]

    def weights(self, model: nn.Module) -> tuple[dict[str, Any], dict[str, Tensor]]:
        """In train mode: the state dict of `model` as it is in eval mode, and the weights as they
        are now, by the names of parameters. Those of the first are copies."""
        mine = {id(p) for p in self._parameters()}
        names = {
            name: id(p)
            for name, p in model.named_parameters(remove_duplicate=False)
            if id(p) in mine
        }
        copies: dict[int, Tensor] = {}  # by the parameter, so that tied names stay tied
        with self.evaluating():
            state = model.state_dict()
            for name in names.keys() & state.keys():
                key = names[name]
                if key not in copies:
                    copies[key] = state[name].detach().clone()
                state[name] = copies[key]
        live = {name: p.detach() for name, p in model.named_parameters() if id(p) in mine}
        return state, live


def _has_modes(optimizer: Any) -> bool:
    return all(callable(getattr(optimizer, name, None)) for name in ("train", "eval"))


def check_weights(model: nn.Module, saved: Mapping[str, Tensor]) -> None:
    """Raise `RunError` unless `saved` are weights of train mode of the model's parameters."""
    here = dict((*model.named_parameters(), *model.named_buffers()))
    for name, value in saved.items():
        if name not in here:
            refuse(f"it has train weights of {name!r}, which the model does not have")
        if value.shape != here[name].shape or value.dtype != here[name].dtype:
            refuse(f"the train weights of {name!r} are {value.dtype} {tuple(value.shape)}")


@torch.no_grad()
def load_weights(model: nn.Module, saved: Mapping[str, Tensor]) -> None:
    """Give the model's parameters these weights, and its buffers what is saved beside them."""
    here = dict((*model.named_parameters(), *model.named_buffers()))
    for name, value in saved.items():
        here[name].copy_(value)
