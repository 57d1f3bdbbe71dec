"""Why one of torch's criteria, or the model, does not take what it is given, and what to write."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop import _options
from trueloop.errors import DataError, LossError
from trueloop.losses import _checks

_INDEXED = (nn.CrossEntropyLoss, nn.NLLLoss, nn.MultiMarginLoss)
_INDEXED_FUNCTIONS = (F.cross_entropy, F.nll_loss, F.multi_margin_loss)
_TAKES_INTEGERS = (nn.Embedding, nn.EmbeddingBag)
_ABOUT_DTYPES = re.compile(
    r"d(?:ata)?type|[Ii]nput type|scalar type|[Tt]ype promoting"
    r"|not implemented for '(?:Bool|Byte|Char|Short|Int|Long)'"
)
"""Torch's errors about tensors of two dtypes, or of one that an operation does not compute with."""
_BINARY = (nn.BCELoss, nn.BCEWithLogitsLoss)
_BINARY_FUNCTIONS = (F.binary_cross_entropy, F.binary_cross_entropy_with_logits)


def name_of(criterion: Any) -> str:
    """The name of a criterion in messages: its class, or its function."""
    function = _function(criterion)
    return str(getattr(function, "__name__", None) or type(criterion).__name__)


def _function(criterion: Any) -> Any:
    return criterion.func if isinstance(criterion, partial) else criterion


def is_torchs(criterion: Any) -> bool:
    """Whether it is one of torch's own: its errors are about what it is given, not about code that
    the user could fix."""
    owner = type(criterion) if isinstance(criterion, nn.Module) else _function(criterion)
    return str(getattr(owner, "__module__", "")).partition(".")[0] == "torch"


def has_signature_of_loss_fn(criterion: Any) -> bool:
    """Whether it is written as `loss_fn(model, batch)` is, and no criterion."""
    try:
        first = next(iter(inspect.signature(criterion).parameters), "")
    except (TypeError, ValueError):
        return False
    return first in ("model", "net", "network")


def refusal(criterion: Any, outputs: Any, targets: Any, error: Exception) -> LossError:
    """The error of torch's, in terms of outputs and targets."""
    name, function = name_of(criterion), _function(criterion)
    try:
        _checks.are_tensors(name, outputs, targets)
        if isinstance(criterion, _INDEXED) or function in _INDEXED_FUNCTIONS:
            _check_indexed(name, criterion, outputs, targets)
        elif isinstance(criterion, _BINARY) or function in _BINARY_FUNCTIONS:
            _check_binary(name, outputs, targets)
        elif isinstance(outputs, Tensor) and isinstance(targets, Tensor):
            _checks.same_dimensions(name, outputs, targets)
    except LossError as found:
        return found
    reason = " ".join(str(error).split())
    return LossError(
        f"{name} does not take outputs {_checks.described(outputs)} with targets "
        f"{_checks.described(targets)} ({type(error).__name__}: {reason[:160]}): give them the "
        f"shapes and dtypes that torch documents for {name}"
    )


def _check_indexed(name: str, criterion: Any, outputs: Tensor, targets: Tensor) -> None:
    """Class indices (N, ...), int64, for outputs (N, C, ...)."""
    if outputs.ndim == 1 and targets.ndim == 0:
        outputs, targets = outputs[None], targets[None]
    _checks.columns(name, outputs, None)
    weight = getattr(criterion, "weight", None)
    if isinstance(criterion, partial):
        weight = criterion.keywords.get("weight")
    if isinstance(weight, Tensor) and len(weight) != outputs.shape[1]:
        raise LossError(
            f"{name} has {len(weight)} class weights for {outputs.shape[1]} outputs: give one "
            "weight per class, or the model's last layer as many outputs"
        )
    _checks.class_targets(name, outputs, targets)
    if targets.is_floating_point():
        return
    if targets.dtype not in (torch.int64, torch.uint8):
        raise LossError(f"{name}: class targets are {targets.dtype}: write targets.long()")
    ignore_index = getattr(criterion, "ignore_index", -100)
    if isinstance(criterion, partial):
        ignore_index = criterion.keywords.get("ignore_index", -100)
    _checks.class_range(name, targets, outputs.shape[1], ignore_index)


def _check_binary(name: str, outputs: Tensor, targets: Tensor) -> None:
    """Targets of the outputs' shape and dtype, from 0 to 1; without logits, outputs too."""
    _checks.same_shape(name, outputs, targets)
    if not targets.is_floating_point():
        raise LossError(f"{name}: the targets are {targets.dtype}: write targets.float()")
    _checks.unit_interval(name, targets)
    outside = (outputs < 0) | (outputs > 1)
    if "ogits" not in name and bool(outside.any()):
        value = outputs.detach()[outside][0].item()
        raise LossError(
            f"{name}: the model returned {value:.4g}, which is not a probability: write "
            "nn.BCEWithLogitsLoss(), and leave the sigmoid out of the model"
        )


def check_tensors(model: nn.Module, inputs: Any, error: Exception) -> None:
    """Raise `DataError` if inputs with a different dtype or device than the model's made it
    fail."""
    parameter = next(model.parameters(), None)
    if not isinstance(inputs, Tensor) or parameter is None:
        return
    if inputs.device != parameter.device and isinstance(error, RuntimeError):
        raise DataError(
            f"the inputs are on {inputs.device} and the model on {parameter.device}: write "
            f"Feed(..., device='{parameter.device}')"
        ) from error
    # Integers are the natural inputs of an embedding: the error is then about something else.
    fits = not inputs.is_floating_point() and any(
        isinstance(m, _TAKES_INTEGERS) for m in model.modules()
    )
    if inputs.dtype != parameter.dtype and not fits and _ABOUT_DTYPES.search(str(error)):
        dtype = str(parameter.dtype).removeprefix("torch.")
        raise DataError(
            f"the inputs are {inputs.dtype} and the model's parameters {parameter.dtype}: write "
            f"inputs.to(torch.{dtype}), or array.astype('{dtype}') before they go into the Feed"
        ) from error


def check_inputs(model: nn.Module, inputs: Any, error: TypeError) -> None:
    """Raise `LossError` if the model's `forward` does not take these inputs; else nothing."""
    many = inputs if isinstance(inputs, (tuple, list)) else ()
    named = inputs if isinstance(inputs, Mapping) else {}
    if not (many or named) or not isinstance(model, nn.Module):
        return
    try:
        inspect.signature(model.forward).bind(*many, **named)
    except (TypeError, ValueError):
        how = f"the keyword arguments {', '.join(map(str, named))}"
        if isinstance(inputs, (tuple, list)):
            how = f"{len(inputs)} arguments"
        raise LossError(
            f"the batch's inputs are {_options.kind_of(inputs)}, and so {how} of the model's "
            f"forward, which does not take them ({' '.join(str(error).split())[:120]}): write your "
            "own function of (model, batch) that calls the model as it should be"
        ) from error
