"""Windows that are open while their model is looked at from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from torch import Tensor, nn
from torch.utils._pytree import tree_map

if TYPE_CHECKING:
    from trueloop.step.step import Step

open_windows: WeakSet[Step] = WeakSet()
"""Steps that may have an open window: what `warn_if_accumulating` looks through."""


def warn_if_accumulating(model: nn.Module) -> None:
    """Warn once if a step has gradients for this model that no update has applied yet."""
    for step in tuple(open_windows):
        if not step.is_accumulating:
            open_windows.discard(step)
        elif not {id(p) for p in model.parameters()}.isdisjoint(
            id(p) for p in step._gradients.parameters
        ):
            step._warn_open_window("the model is evaluated without its update", stacklevel=5)


def detached(outputs: Any) -> Any:
    """`outputs` with every tensor in it detached from its graph."""
    return tree_map(lambda part: part.detach() if isinstance(part, Tensor) else part, outputs)
