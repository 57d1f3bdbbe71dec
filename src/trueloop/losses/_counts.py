"""The count that torch's mean losses divide by, so that micro-batches can be weighted exactly.

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
    nn.SoftMarginLoss,
    nn.HingeEmbeddingLoss,
    nn.PoissonNLLLoss,
)
"""Losses whose mean is over elements, and whose outputs and targets must have one shape."""
_SAME_SHAPE = (nn.KLDivLoss, nn.MultiLabelSoftMarginLoss)
"""Losses of one shape whose mean is over something else."""
_ELEMENTWISE_FUNCTIONS = (
    F.mse_loss,
    F.l1_loss,
    F.smooth_l1_loss,
    F.huber_loss,
    F.binary_cross_entropy,
    F.binary_cross_entropy_with_logits,
    F.soft_margin_loss,
    F.hinge_embedding_loss,
    F.poisson_nll_loss,
)

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
    immediate = flags.device.type == "cpu" and not torch.compiler.is_compiling()
    return int(flags.sum()) if immediate else flags.sum()


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
    """Whether it is one of torch's element-wise losses: a module with torch's own `forward`, or a
    function, in a `partial` or not."""
    function = criterion.func if isinstance(criterion, partial) else criterion
    return _has_forward_of(criterion, ELEMENTWISE) or function in _ELEMENTWISE_FUNCTIONS


def is_indexed(criterion: Any) -> bool:
    """Whether it is torch's cross-entropy or NLL loss, as a module or a function."""
    function = criterion.func if isinstance(criterion, partial) else criterion
    kinds = (nn.CrossEntropyLoss, nn.NLLLoss)
    return _has_forward_of(criterion, kinds) or function in _INDEXED_FUNCTIONS


def takes_logits_of_two(criterion: Any) -> bool:
    """Whether it is torch's binary cross-entropy of logits, which takes any targets."""
    function = criterion.func if isinstance(criterion, partial) else criterion
    is_module = _has_forward_of(criterion, (nn.BCEWithLogitsLoss,))
    return is_module or function is F.binary_cross_entropy_with_logits


def needs_same_shape(criterion: Any) -> bool:
    """Whether it is a loss of torch's that would broadcast outputs and targets of two shapes."""
    return is_elementwise(criterion) or _has_forward_of(criterion, _SAME_SHAPE)


def _has_forward_of(criterion: Any, kinds: tuple[type[nn.Module], ...]) -> bool:
    forward = getattr(type(criterion), "forward", None)
    return any(forward is kind.forward for kind in kinds)
