"""evaluate: exact scores over a feed, and a model left as it was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import metrics as metric_sets
from trueloop.errors import ConfigError, DataError
from trueloop.feed import Feed
from trueloop.records import EvalRecord, LossOutput, batch_samples
from trueloop.step import precision as precisions


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Eval mode and inference mode; afterwards each module's own mode again.

    A batch norm that was held in eval during training stays there.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        for module, training in modes:
            module.training = training


def evaluate(
    model: nn.Module,
    feed: Any,
    loss_fn: Callable[[nn.Module, Any], Any],
    metrics: Any = None,
    *,
    precision: str = "fp32",
    collect: bool = False,
) -> EvalRecord:
    """Mean loss and metrics over every sample of `feed`, each counted once.

    The loss is weighted by what each batch's mean is over, so it does not depend on how the data
    is cut into batches. `metrics` is a set of `trueloop.metrics`, a torchmetrics metric or
    collection, or a dict of them; they need a `loss_fn` that returns a `LossOutput` with outputs
    and targets (as `supervised` does). With `collect`, the record's details hold all `outputs` and
    `targets` as CPU tensors in the feed's order (in the tuples and dicts that they come in), those
    of half precision as float32.

    Raises `DataError` for a feed without a batch, `ConfigError` for metrics without outputs.
    """
    started = time.perf_counter()
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    meter = metric_sets.wrap(metrics)
    if meter is not None:
        meter.reset()
        meter.to(device)
    mean, samples, collected = Mean(), 0, Collected() if collect else None
    mode = precisions.by_name(precision, device)
    with evaluating(model):
        for batch in as_feed(feed):
            with mode.autocast():  # not around the metrics, nor around what makes the batches
                output = LossOutput.of(loss_fn(model, batch))
            found = batch_samples(batch)
            here = 1 if found is None else found
            mean.add(output.loss, output.count, here)
            samples += here
            if (meter or collect) and output.outputs is None:
                raise ConfigError(
                    "metrics need the model's outputs: let loss_fn return "
                    "LossOutput(loss, outputs=…, targets=…), or use trueloop.supervised(criterion)"
                )
            if meter is not None:
                meter.update(output.outputs, output.targets)
            if collected is not None:
                collected.add(output)
        if samples == 0:
            raise DataError("there is nothing to evaluate on: the feed yields no batch")
        scores = {"loss": mean.value(), **(meter.compute() if meter is not None else {})}
        details = meter.details() if meter is not None else {}
    if collected is not None:
        details.update(collected.tensors())
    return EvalRecord(scores, samples, seconds=time.perf_counter() - started, details=details)


class Mean:
    """An exact weighted mean, in double precision where the device has it, read once."""

    def __init__(self) -> None:
        self.total: Tensor | float = 0.0
        self.weight: Tensor | float = 0.0

    def add(self, value: Tensor, count: Any, samples: int) -> None:
        weight = samples if count is None else count() if callable(count) else count
        wide = value.detach() if value.device.type == "mps" else value.detach().double()
        # A mean over nothing (every target ignored) may be NaN, and weighs nothing.
        if isinstance(weight, Tensor):
            weight = weight.reshape(())
            wide = torch.where(weight > 0, wide, torch.zeros_like(wide))
        elif weight == 0:
            return
        self.total = self.total + wide * weight
        self.weight = self.weight + weight

    def value(self) -> float:
        weight = float(self.weight)
        return float(self.total) / weight if weight else float("nan")


class Collected:
    """All outputs and targets of a pass, moved to the CPU batch by batch."""

    def __init__(self) -> None:
        self.outputs: list[Any] = []
        self.targets: list[Any] = []

    def add(self, output: LossOutput) -> None:
        self.outputs.append(_to_host(output.outputs))
        self.targets.append(_to_host(output.targets))

    def tensors(self) -> dict[str, Any]:
        return {"outputs": _joined(self.outputs), "targets": _joined(self.targets)}


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
    """The batches' parts, as `_to_host` left them, as one; what is no tensor stays a list."""
    first = parts[0]
    if isinstance(first, Tensor) and first.ndim:
        return torch.cat(parts)
    if isinstance(first, dict):
        return {name: _joined([part[name] for part in parts]) for name in first}
    if isinstance(first, tuple):
        return tuple(_joined(list(same)) for same in zip(*parts, strict=True))
    return parts


def as_feed(data: Any) -> Feed:
    """`data` itself if it is a feed; a `DataLoader` taken as it is."""
    return data if isinstance(data, Feed) else Feed(data)
