"""The gradients that one update is made of, kept apart from everybody else's."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Mapping, Sequence

from torch import Tensor, nn
from torch.optim import Optimizer

PLAIN = {Tensor}
"""The types of gradients that are neither missing nor sharded (`DTensor`)."""
is_sparse = operator.attrgetter("is_sparse")
gradient_of = operator.attrgetter("grad")


class Gradients:
    """The gradients of the optimizers' parameters, in the model's order, as `clip_grad_norm_` would
    see them.

    Between the micro-batches of a window they are stashed: another step's backward (a GAN's other
    half) may write to the same parameters meanwhile.
    """

    def __init__(self, model: nn.Module, optimizers: Sequence[Optimizer]) -> None:
        self._model = model
        self._optimizers = optimizers
        self._stashed: list[Tensor | None] = []
        self._collect()

    def _collect(self) -> None:
        self.held = self._in_optimizers()
        """The optimizers' parameters, in their own order."""
        held = {id(p) for p in self.held}
        named = [(name, p) for name, p in self._model.named_parameters() if id(p) in held]
        inside = {id(p) for _, p in named}
        self.outside = [p for p in self.held if id(p) not in inside]
        """Those that the model does not have."""
        named += [(f"parameter {k} outside the model", p) for k, p in enumerate(self.outside)]
        self.names = [name for name, _ in named]
        self.parameters = [p for _, p in named]

    def _in_optimizers(self) -> list[nn.Parameter]:
        return [
            p for one in self._optimizers for group in one.param_groups for p in group["params"]
        ]

    def refresh(self) -> bool:
        """Look at the optimizers' parameters again; whether they are others than before."""
        # Once per update, over all parameters: without a list or a Python loop.
        now = [group["params"] for one in self._optimizers for group in one.param_groups]
        if sum(map(len, now)) == len(self.held) and all(
            map(operator.is_, itertools.chain.from_iterable(now), self.held)
        ):
            return False
        self._collect()
        return True

    def clear(self) -> None:
        """Set every gradient to None, and forget those that are stashed."""
        self._stashed = []
        for parameter in self.parameters:
            parameter.grad = None

    def stash(self) -> None:
        """Take the gradients off their parameters, out of the reach of another backward."""
        stashed = [parameter.grad for parameter in self.parameters]
        self.clear()
        self._stashed = stashed

    def restore(self) -> None:
        """Put the stashed gradients back on their parameters."""
        for parameter, gradient in zip(self.parameters, self._stashed, strict=True):
            parameter.grad = gradient

    @property
    def stashed(self) -> list[Tensor | None]:
        """The stashed gradients, one for each of `parameters`."""
        return self._stashed or [None] * len(self.parameters)

    @stashed.setter
    def stashed(self, gradients: list[Tensor | None]) -> None:
        self._stashed = gradients

    def names_of(self, parameters: Sequence[Tensor]) -> list[str]:
        """The names of some of `parameters`."""
        wanted = {id(p) for p in parameters}
        found = zip(self.names, self.parameters, strict=True)
        return [name for name, p in found if id(p) in wanted]

    def dense(self) -> tuple[list[str], list[Tensor]]:
        """Names and gradients of the parameters that have one; of a sparse one, its values. Not to
        be written to."""
        found = list(map(gradient_of, self.parameters))
        if set(map(type, found)) == PLAIN and not any(map(is_sparse, found)):
            return self.names, found
        return self._found()

    def _found(self) -> tuple[list[str], list[Tensor]]:
        names, gradients = [], []
        for name, parameter in zip(self.names, self.parameters, strict=True):
            gradient = parameter.grad
            if gradient is None:
                continue
            if gradient.is_sparse:
                # Rows that several samples touched are summed first; the values then are a view.
                parameter.grad = gradient.coalesce()
                gradient = parameter.grad.values()
            names.append(name)
            gradients.append(gradient)
        return names, gradients

    def state_dict(self) -> dict[str, Tensor]:
        """The stashed gradients by the names of their parameters."""
        stashed = zip(self.names, self._stashed, strict=True) if self._stashed else ()
        return {name: gradient for name, gradient in stashed if gradient is not None}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Load what `state_dict` returned, each gradient on its parameter's device."""
        self.clear()
        found = [state.get(name) for name in self.names]
        self._stashed = [
            None if gradient is None else gradient.detach().clone().to(p.device)
            for gradient, p in zip(found, self.parameters, strict=True)
        ]
