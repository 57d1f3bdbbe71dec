"""evaluate and predict: exact scores and outputs over a feed, and a model left as it was found; and
the scores of a training epoch."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import _options, metrics as metric_sets
from trueloop.errors import ConfigError, DataError, LossError, RunError
from trueloop.feed import Feed
from trueloop.feed.foreign import is_loader
from trueloop.feed.kinds import check_kind
from trueloop.losses import apply_model
from trueloop.records import EvalRecord, LossOutput, StepRecord, batch_samples, resolve_count
from trueloop.step import Step, precision as precisions
from trueloop.step.arguments import check_loss_fn
from trueloop.step.step import detached, warn_if_accumulating

# What torch raises where a loss differentiates and no graph is recorded.
_NO_GRADIENTS = re.compile(
    r"does not require grad|requires_grad|inference tensor|InferenceMode", re.IGNORECASE
)


class NeedsGradientsError(LossError):
    """The loss differentiates, and `evaluate` was called without `gradients=True`."""


@contextmanager
def evaluating(model: nn.Module, *, gradients: bool = False) -> Iterator[None]:
    """Eval mode, and inference mode unless `gradients`; afterwards each module's own mode again.

    A batch norm that was held in eval during training stays there.
    """
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.enable_grad() if gradients else torch.inference_mode():
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
    gradients: bool = False,
) -> EvalRecord:
    """Mean loss, its named parts and metrics over every sample of `feed`, each counted once.

    Each batch's loss and parts are weighted by the number of elements that they average, so they
    do not depend on how the data is cut into batches.

    Args:
        model: any module; its modules' modes and its weights are afterwards what they were.
        feed: a `Feed` or a `DataLoader`.
        loss_fn: `loss_fn(model, batch)`, as for `Step`.
        metrics: a set of `trueloop.metrics`, a torchmetrics metric or collection, or a dict of
            them; they need a `loss_fn` that returns a `LossOutput` with outputs and targets (as
            `supervised` does).
        precision: `fp32`, `bf16` or `fp16`: autocast around the forward and the loss.
        collect: put all `outputs` and `targets` into the record's details as CPU tensors in the
            feed's order (in the tuples and dicts that they come in), those of half precision as
            float32.
        gradients: record graphs, for a loss that differentiates (input gradients, forces of an
            energy model). Otherwise the pass runs in inference mode.

    Raises:
        DataError: the feed yields no batch.
        ConfigError: metrics without outputs, or a metric and a part of the loss of one name.
        LossError: `loss_fn` differentiates, and `gradients` is False.
    """
    started = time.perf_counter()
    _check_model(model, "evaluate(model, feed, loss_fn)")
    check_loss_fn(loss_fn, "evaluate(model, feed, loss_fn)")
    _options.flag("collect", collect)
    _options.flag("gradients", gradients)
    feed = as_feed(feed)
    warn_if_accumulating(model)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    meter = metric_sets.wrap(metrics)
    if meter is not None:
        meter.reset()
        meter.to(device)
    tally = _Tally(meter, collect)
    mode = precisions.by_name(precision, device)
    with evaluating(model, gradients=gradients):
        for batch in feed:
            with mode.autocast():  # not around the metrics, nor around what makes the batches
                output = _output(loss_fn, model, batch, gradients)
            tally.add(output, batch)
        scores, details = tally.results()
    seconds = time.perf_counter() - started
    return EvalRecord(scores, tally.samples, seconds=seconds, details=details)


class _Tally:
    """What a pass over a feed adds up."""

    def __init__(self, meter: metric_sets.MetricSet | None, collect: bool) -> None:
        self.samples = 0
        self._means: dict[str, Mean] = {"loss": Mean()}
        self._meter = meter
        self._collected = Collected() if collect else None

    def add(self, output: LossOutput, batch: Any) -> None:
        found = batch_samples(batch)
        samples = 1 if found is None else found
        weight = resolve_count(output.count, samples)
        for name, value in {"loss": output.loss, **output.parts}.items():
            self._means.setdefault(name, Mean()).add(value, weight)
        self.samples += samples
        if self._meter is not None:
            check_outputs(output.outputs)
            self._meter.update(output.outputs, output.targets)
        if self._collected is not None:
            check_outputs(output.outputs)
            self._collected.add(output)

    def results(self) -> tuple[dict[str, float], dict[str, Any]]:
        """Scores and details; `DataError` if there was no batch."""
        if self.samples == 0:
            raise DataError("there is nothing to evaluate on: the feed yields no batch")
        means = {name: mean.value() for name, mean in self._means.items()}
        meter = self._meter
        scores = joined(means, meter.compute() if meter is not None else {})
        details = meter.details() if meter is not None else {}
        if self._collected is not None:
            details.update(self._collected.tensors())
        return scores, details


def _output(loss_fn: Any, model: nn.Module, batch: Any, gradients: bool) -> LossOutput:
    try:
        output = LossOutput.of(loss_fn(model, batch))
    except RuntimeError as error:
        if gradients or not _NO_GRADIENTS.search(str(error)):
            raise
        reason = " ".join(str(error).split())
        raise NeedsGradientsError(
            f"the loss differentiates, and an evaluation records no graph ({reason[:100]}): write "
            "evaluate(..., gradients=True)"
        ) from error
    if gradients:
        output.outputs, output.targets = detached(output.outputs), detached(output.targets)
    return output


def _check_model(model: Any, call: str) -> None:
    if isinstance(model, Step):
        raise ConfigError(
            "the model is a Step: write step.model, e.g. evaluate(step.model, feed, step.loss_fn)"
        )
    _options.model(model, call)


def joined(means: Mapping[str, float], metrics: Mapping[str, float]) -> dict[str, float]:
    """The means of the loss and of its parts beside the metrics; `ConfigError` for a name that
    both have."""
    if twice := sorted(means.keys() & metrics.keys()):
        raise ConfigError(
            f"{twice[0]!r} is a metric and a part of the loss: give the part of loss_fn a name of "
            "its own"
        )
    return {**means, **metrics}


def check_outputs(outputs: Any) -> None:
    """Raise `ConfigError` if `loss_fn` gave no outputs, which metrics are computed from."""
    if outputs is None:
        raise ConfigError(
            "metrics need the model's outputs: let loss_fn return "
            "LossOutput(loss, outputs=…, targets=…), or use trueloop.supervised(criterion)"
        )


def predict(
    model: nn.Module,
    feed: Any,
    forward: Callable[[nn.Module, Any], Any] = apply_model,
    *,
    precision: str = "fp32",
) -> Any:
    """The model's outputs over `feed`, data without targets: in eval mode, without gradients.

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
    """
    _check_model(model, "predict(model, feed)")
    _options.function("forward", forward, "model, batch", "lambda model, batch: model(batch[0])")
    feed = as_feed(feed)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    mode = precisions.by_name(precision, device)
    parts = []
    with evaluating(model):
        for batch in feed:
            with mode.autocast():
                outputs = forward(model, batch)
            if outputs is None:
                raise ConfigError("forward returned None: let it return the model's outputs")
            parts.append(_to_host(outputs))
    if not parts:
        raise DataError("there is nothing to predict: the feed yields no batch")
    return _joined(parts)


class EpochScores:
    """An epoch's scores: the mean training loss, its parts, the metrics of both data sets.

    The training means are weighted by samples and added up without a wait: updates are kept apart
    until there are `_FOLD` of them, then added up on their device. A state taken in a long epoch
    does not grow with it, and no sum depends on when it is taken.
    """

    _FOLD = 256

    def __init__(
        self, step: Step, val: Feed | None, metrics: Any, train_metrics: Any, gradients: bool
    ) -> None:
        self.step = step
        self.val = val
        self.metrics = metrics
        self._gradients = gradients
        self._train_metrics = metric_sets.wrap(train_metrics)
        self.reset()

    def reset(self) -> None:
        """Begin an epoch."""
        self._updates: list[tuple[dict[str, Tensor], int]] = []
        self._sums: dict[str, tuple[Tensor, int]] = {}
        if self._train_metrics is not None:
            self._train_metrics.reset()

    @contextmanager
    def observed(self) -> Iterator[None]:
        """Within it, the training metrics see the outputs of each micro-batch."""
        meter, step = self._train_metrics, self.step
        if meter is None:
            yield
            return

        def update(outputs: Any, targets: Any) -> None:
            check_outputs(outputs)
            meter.update(outputs, targets)

        before, step.on_outputs = step.on_outputs, update
        meter.to(step.device)
        try:
            yield
        finally:
            step.on_outputs = before

    def add(self, record: StepRecord) -> None:
        """Take in an update, without reading its tensors."""
        self._updates.append(({"loss": record.loss, **record.parts}, record.samples))
        if len(self._updates) == self._FOLD:
            self._fold()

    def _fold(self) -> None:
        names = dict.fromkeys(name for means, _ in self._updates for name in means)
        for name in names:
            kept = [(means[name], n) for means, n in self._updates if name in means]
            values = torch.stack([value for value, _ in kept])
            wide = values if values.device.type == "mps" else values.double()
            weights = torch.tensor([n for _, n in kept]).to(wide, non_blocking=True)
            total, weight = self._sums.get(name, (torch.zeros_like(wide[0]), 0))
            self._sums[name] = total + (wide * weights).sum(), weight + sum(n for _, n in kept)
        self._updates = []

    def _means(self) -> dict[str, float]:
        self._fold()
        means = {name: float(total) / weight for name, (total, weight) in self._sums.items()}
        return {"loss": float("nan"), **means}  # NaN before the first update

    def evaluate(self, epoch: int) -> EvalRecord:
        """The scores at the end of `epoch`, or where it was cut short."""
        step = self.step
        measured = self._train_metrics.compute() if self._train_metrics is not None else {}
        scores = {f"train_{name}": value for name, value in joined(self._means(), measured).items()}
        if self.val is None:
            return EvalRecord(scores, 0, epoch, step.updates)
        found = self._on_val(self.val)
        scores |= {f"val_{name}": value for name, value in found.scores.items()}
        return EvalRecord(scores, found.samples, epoch, step.updates, found.seconds, found.details)

    def _on_val(self, val: Feed) -> EvalRecord:
        step = self.step
        options: dict[str, Any] = {"precision": step.precision.name}
        if not self._gradients:
            try:
                return evaluate(step.model, val, step.loss_fn, self.metrics, **options)
            except NeedsGradientsError:
                self._gradients = True
                warnings.warn(
                    "the loss differentiates, so val is evaluated with gradients from here on: "
                    "write fit(..., gradients=True)",
                    UserWarning,
                    stacklevel=5,
                )
        return evaluate(step.model, val, step.loss_fn, self.metrics, gradients=True, **options)

    def check_resumable(self) -> None:
        """Raise `ConfigError` if a run that is saved could not go on with its training metrics."""
        meter = self._train_metrics
        if meter is not None and not meter.is_resumable:
            raise ConfigError(
                f"train_metrics={type(meter).__name__} cannot be saved in the midst of an epoch: "
                "define its state_dict() and load_state_dict(state)"
            )

    def state_dict(self) -> dict[str, Any]:
        meter = self._train_metrics
        return {
            "updates": [list(update) for update in self._updates],
            "sums": {name: list(pair) for name, pair in self._sums.items()},
            "metrics": None if meter is None else meter.state_dict(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.reset()
        device = self.step.device
        self._updates = [
            ({name: value.to(device) for name, value in means.items()}, n)
            for means, n in state["updates"]
        ]
        self._sums = {name: (total.to(device), n) for name, (total, n) in state["sums"].items()}
        meter = self._train_metrics
        if meter is not None and state["metrics"] is not None:
            try:
                meter.load_state_dict(state["metrics"])
            except Exception as error:  # a set of the user's own, or of other metrics
                reason = " ".join(f"{type(error).__name__}: {error}".split())
                raise RunError(
                    f"train_metrics do not take the state in the checkpoint ({reason[:120]}): "
                    "write the same train_metrics as before"
                ) from error


class Mean:
    """An exact weighted mean, in double precision where the device has it, read once."""

    def __init__(self) -> None:
        self.total: Tensor | float = 0.0
        self.weight: Tensor | float = 0.0

    def add(self, value: Tensor, weight: float | Tensor) -> None:
        """Take in the mean `value` of a batch over `weight` samples, tokens or class weights."""
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


def as_feed(data: Any, name: str = "feed") -> Feed:
    """`data` itself if it is a feed; a feed of it if it is a `DataLoader`.

    Raises `DataError`, with the argument's `name`, for data that are not batches yet.
    """
    if isinstance(data, Feed):
        return data
    if not is_loader(data):
        check_kind(data)
        shown = "(x, y)" if isinstance(data, (tuple, list)) else "data"
        raise DataError(
            f"{name} is {_options.kind_of(data)}, and not a Feed or a DataLoader: write "
            f"Feed({shown}, batch_size=32)"
        )
    return Feed(data)
