"""A model's outputs over a feed, in the feed's order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import _options, ranks
from trueloop.errors import ConfigError, DataError
from trueloop.evaluation.evaluation_pass import as_feed, check_model, device_of, evaluating, turns
from trueloop.losses import apply_model
from trueloop.records import LossOutput
from trueloop.step import precision as precisions


def predict(
    model: nn.Module,
    feed: Any,
    forward: Callable[[nn.Module, Any], Any] = apply_model,
    *,
    precision: str = "fp32",
) -> Any:
    """The model's outputs over `feed`, data without targets: in eval mode, without gradients.

    On several ranks every one must call it; they run whole batches in turn, and each gets, and
    needs the memory for, the outputs of all.

    Args:
        model: any module; its modules' modes are afterwards what they were.
        feed: a `Feed` or a `DataLoader`; its batches are the inputs.
        forward: `forward(model, batch)` returns the outputs for a batch. By default the batch is
            the input: a tensor, a tuple or list of positional arguments, or a dict of keyword
            arguments. For batches of (inputs, targets) write `lambda model, batch:
            model(batch[0])`.
        precision: `fp32`, `bf16` or `fp16`: autocast around the forward.

    Returns:
        The outputs as one CPU tensor of shape (N, ...) in the feed's order, in the tuples and
        dicts that they come in; those of half precision as float32.

    Raises:
        DataError: the feed yields no batch.
        ConfigError: `forward` returned None, or an argument that cannot work.
    """
    check_model(model, "predict(model, feed)")
    _options.function("forward", forward, "model, batch", "lambda model, batch: model(batch[0])")
    feed = as_feed(feed)
    mode = precisions.by_name(precision, device_of(model))
    mine: list[tuple[int, Any]] = []
    with evaluating(model), closing(turns(feed)) as batches:
        for turn in batches:
            with mode.autocast():
                outputs = forward(model, turn.batch)
            if outputs is None:
                raise ConfigError("forward returned None: let it return the model's outputs")
            if turn.counts:
                mine.append((turn.number, _to_host(outputs)))
    parts = _in_order(mine)
    if not parts:
        raise DataError("there is nothing to predict: the feed yields no batch")
    return _joined(parts)


class Collected:
    """All outputs and targets of a pass, moved to the CPU batch by batch."""

    def __init__(self) -> None:
        self._batches: list[tuple[int, tuple[Any, Any]]] = []

    def add(self, number: int, output: LossOutput) -> None:
        """Take in the batch of this number in the feed's order."""
        self._batches.append((number, (_to_host(output.outputs), _to_host(output.targets))))

    def tensors(self) -> dict[str, Any]:
        """Those of all ranks, in the feed's order."""
        outputs, targets = zip(*_in_order(self._batches), strict=True)
        return {"outputs": _joined(list(outputs)), "targets": _joined(list(targets))}


def _in_order(batches: list[tuple[int, Any]]) -> list[Any]:
    """All ranks' values of numbered batches, in the order of the numbers."""
    everywhere = ranks.of_each_part(batches, "the other ranks' outputs")
    numbered = [pair for found in everywhere for pair in found]
    return [found for _, found in sorted(numbered, key=lambda pair: pair[0])]


def _to_host(part: Any) -> Any:
    if isinstance(part, Tensor):
        # numpy, where these go next, has no bfloat16.
        return (part.float() if part.dtype in (torch.float16, torch.bfloat16) else part).cpu()
    if isinstance(part, Mapping):
        return {name: _to_host(inner) for name, inner in part.items()}
    if isinstance(part, (tuple, list)):
        return tuple(_to_host(inner) for inner in part)
    return part


def _joined(parts: list[Any]) -> Any:
    """The batches' parts, as `_to_host` left them, as one; anything but a tensor stays a list."""
    first = parts[0]
    if isinstance(first, Tensor) and first.ndim:
        return torch.cat(parts)
    if isinstance(first, dict):
        return {name: _joined([part[name] for part in parts]) for name in first}
    if isinstance(first, tuple):
        return tuple(_joined(list(same)) for same in zip(*parts, strict=True))
    return parts
