"""The z-loss, which keeps the logits' normaliser near 1."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from trueloop import _options
from trueloop.errors import LossError
from trueloop.losses import _checks


def z_loss(
    logits: Tensor, targets: Tensor | None = None, *, weight: float = 1e-4, ignore_index: int = -100
) -> Tensor:
    """weight times the mean of log² Z, where Z is the sum of exp(logits) over the classes.

    A softmax does not see a constant that is added to all logits of a position, and nothing keeps
    them from drifting to where bf16 is coarse. This term, beside the cross-entropy, does. Chowdhery
    et al., "PaLM: scaling language modeling with pathways", 2022, section 5.

    As a named part of the loss::

        def loss_fn(model, batch):
            tokens, targets = batch
            logits = model(tokens)
            loss = F.cross_entropy(logits.flatten(0, -2), targets.flatten())
            z = losses.z_loss(logits, targets)
            return loss + z, (targets != -100).sum(), {"z_loss": z.detach()}

    Args:
        logits: (..., classes), floating point; the classes are the last dimension. Those of fewer
            than 32 bits are computed with in float32.
        targets: (...), integers, of which those that are `ignore_index` do not count; or bool,
            True where a position counts. None: all count.
        weight: of the term, 0 or above.
        ignore_index: the target that the cross-entropy beside it ignores.

    Returns:
        A scalar of at least 32 bits: the mean over the positions that count, as the cross-entropy
        is; 0, with a gradient of 0, where none does.

    Raises:
        ConfigError: for a weight below 0.
        LossError: for logits that are not floating point, or targets of a different shape.
    """
    weight = _options.not_negative("weight", weight, "1e-4")
    _check(logits, targets)
    if logits.dtype in (torch.float16, torch.bfloat16):
        logits = logits.float()
    squares = torch.logsumexp(logits, dim=-1).square()
    if targets is None:
        return weight * squares.mean()
    kept = targets if targets.dtype == torch.bool else targets != ignore_index
    counted = torch.where(kept, squares, 0.0).sum()
    return weight * counted / kept.sum().clamp(min=1)


def _check(logits: Any, targets: Any) -> None:
    if not isinstance(logits, Tensor) or not logits.is_floating_point() or logits.ndim == 0:
        raise LossError(
            f"z_loss takes logits of shape (..., classes), not {_checks.described(logits)}: give "
            "what the model returns, before any argmax or softmax"
        )
    if logits.numel() == 0:
        raise LossError("z_loss: the batch is empty: leave empty batches out of the feed")
    if targets is None:
        return
    if not isinstance(targets, Tensor) or targets.shape != logits.shape[:-1]:
        raise LossError(
            f"z_loss: the logits are {_checks.described(logits)} and the targets "
            f"{_checks.described(targets)}: the targets are of shape {tuple(logits.shape[:-1])}, "
            "one for each position"
        )
    if targets.is_floating_point() or targets.is_complex():
        raise LossError(
            f"z_loss: the targets are {targets.dtype}: give the class indices, or a bool mask of "
            "the positions that count"
        )
