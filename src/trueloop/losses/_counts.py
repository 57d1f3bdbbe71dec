"""What torch's mean losses are the mean over, so that micro-batches can be weighted exactly.

With weights `count_i`, the micro-batches' losses add up to their union's:
`sum(count_i * loss_i) / sum(count_i)`. Every function here is free of waits for the device.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

CountRule = Callable[[Any, Any], "int | float | Tensor"]
"""(outputs, targets) -> what the mean is over."""

ELEMENTWISE = (
    nn.MSELoss,
    nn.L1Loss,
    nn.SmoothL1Loss,
    nn.HuberLoss,
    nn.BCELoss,
    nn.BCEWithLogitsLoss,
)
"""Losses whose mean is over elements, and whose outputs and targets must have one shape."""

_INDEXED_FUNCTIONS = (F.cross_entropy, F.nll_loss)


def cross_entropy_count(
    outputs: Tensor, targets: Tensor, weight: Tensor | None = None, ignore_index: int = -100
) -> int | Tensor:
    """The denominator of `F.cross_entropy(..., reduction="mean")` and of `F.nll_loss`.

    Class indices: how many are not ignored, or the sum of their class weights (also with label
    smoothing). Soft targets, of the outputs' own shape (N, C, ...): N times the further
    dimensions, whatever the weights.
    """
    if targets.is_floating_point():
        return outputs.numel() // outputs.shape[0 if outputs.ndim == 1 else 1]
    kept = targets != ignore_index
    if weight is None:
        return count_of(kept)
    return (weight[torch.where(kept, targets, 0).long()] * kept).sum()


def count_of(flags: Tensor) -> int | Tensor:
    """How many are set: a plain number where reading it costs no wait, a scalar tensor elsewhere.

    With plain numbers a window sees that its micro-batches are equal, and weights them exactly as
    one would by hand.
    """
    return int(flags.sum()) if flags.device.type == "cpu" else flags.sum()


def element_count(outputs: Tensor, targets: Tensor) -> int:
    """The denominator of a mean over elements."""
    return outputs.numel()


def rule_for(criterion: Any) -> CountRule | None:
    """How to count for `criterion`; None where its mean is over samples, or is not known to us."""
    own = getattr(criterion, "count", None)
    if callable(own):
        rule: CountRule = own
        return rule
    forward = getattr(type(criterion), "forward", None)
    if forward in (nn.CrossEntropyLoss.forward, nn.NLLLoss.forward):
        return partial(_module_count, criterion)
    if is_elementwise(criterion):
        return element_count
    if criterion in _INDEXED_FUNCTIONS:
        return cross_entropy_count
    if isinstance(criterion, partial) and criterion.func in _INDEXED_FUNCTIONS:
        options = criterion.keywords
        return partial(
            cross_entropy_count,
            weight=options.get("weight"),
            ignore_index=options.get("ignore_index", -100),
        )
    return None


def _module_count(
    criterion: nn.CrossEntropyLoss | nn.NLLLoss, outputs: Tensor, targets: Tensor
) -> int | Tensor:
    # The weight is read at each call, since it moves with `criterion.to(device)`.
    return cross_entropy_count(outputs, targets, criterion.weight, criterion.ignore_index)


def is_elementwise(criterion: Any) -> bool:
    """Whether it is one of torch's element-wise losses, with torch's own `forward`."""
    forward = getattr(type(criterion), "forward", None)
    return any(forward is kind.forward for kind in ELEMENTWISE)
