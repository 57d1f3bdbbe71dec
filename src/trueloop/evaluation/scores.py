"""Exact scores over a feed."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from trueloop import _options, metrics as metric_sets, ranks, seed as seeds
from trueloop.errors import ConfigError, DataError, LossError
from trueloop.evaluation.evaluation_pass import (
    EvaluationBatch,
    as_feed,
    check_model,
    device_of,
    evaluating,
    turns,
)
from trueloop.evaluation.outputs import Collected
from trueloop.metrics._base import check_reductions
from trueloop.records import EvalRecord, LossOutput, batch_samples, resolve_count
from trueloop.step import precision as precisions
from trueloop.step.arguments import check_loss_fn
from trueloop.step.open_windows import detached, warn_if_accumulating

# What torch raises where a loss differentiates and no graph is recorded.
_NO_GRADIENTS = re.compile(
    r"does not require grad|requires_grad|inference tensor|InferenceMode", re.IGNORECASE
)


class NeedsGradientsError(LossError):
    """The loss differentiates, and `evaluate` was called without `gradients=True`."""


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

    On several ranks every one must call it, with a model of the same weights and a feed of the same
    data; all get the same record. Whole batches go to the ranks in turn, so that the figures are
    bit for bit those of one process: `batch_size` is what one rank runs at once, and ranks beyond
    the number of batches have nothing to do.

    Args:
        model: any module; its modules' modes and its weights are afterwards what they were.
        feed: a `Feed` or a `DataLoader`.
        loss_fn: `loss_fn(model, batch)`, as for `Step`.
        metrics: a set of `trueloop.metrics`, a torchmetrics metric or collection, a dict of names
            to metrics or to functions of (outputs, targets) (`metrics.wrap` says what these
            return), or a list of all these; they need a `loss_fn` that returns a `LossOutput` with
            outputs and targets (as `supervised` does).
        precision: `fp32`, `bf16` or `fp16`: autocast around the forward and the loss.
        collect: put all `outputs` and `targets` into the record's details as CPU tensors in the
            feed's order (in the tuples and dicts that they come in), those of half precision as
            float32. On several ranks each gets those of all, and needs the memory for them.
        gradients: record graphs, for a loss that differentiates (input gradients, forces of an
            energy model). Otherwise the pass runs in inference mode.

    Returns:
        The scores: `loss`, its parts and the metrics, by name.

    Raises:
        DataError: the feed yields no batch.
        ConfigError: metrics without outputs, or a metric and a part of the loss of one name; on
            several ranks, a set of metrics without `reductions`, or a loader that does not give
            each sample to one rank.
        LossError: `loss_fn` differentiates, and `gradients` is False.
    """
    check_model(model, "evaluate(model, feed, loss_fn)")
    warn_if_accumulating(model)
    return scored(
        model, feed, loss_fn, metrics, precision=precision, collect=collect, gradients=gradients
    )


class EvaluationStopped(Exception):  # noqa: N818
    """`should_stop` has said yes in the midst of an evaluation. Modes and the global generators are
    as they were before it, so that it can be made again as a whole."""


def scored(
    model: nn.Module,
    feed: Any,
    loss_fn: Callable[[nn.Module, Any], Any],
    metrics: Any = None,
    *,
    precision: str = "fp32",
    collect: bool = False,
    gradients: bool = False,
    should_stop: Callable[[], bool] | None = None,
) -> EvalRecord:
    """`evaluate`, which asks `should_stop` after each batch: on several ranks on each of them, as
    many times. Raises `EvaluationStopped` where it says yes."""
    started = time.perf_counter()
    check_loss_fn(loss_fn, "evaluate(model, feed, loss_fn)")
    _options.flag("collect", collect)
    _options.flag("gradients", gradients)
    feed = as_feed(feed)
    device = device_of(model)
    meter = metric_sets.wrap(metrics)
    if meter is not None:
        check_reductions(meter)
        meter.reset()
        meter.to(device)
    tally = _PassScores(meter, collect)
    mode = precisions.by_name(precision, device)
    generators = None if should_stop is None else seeds.rng_state()
    with evaluating(model, gradients=gradients), closing(turns(feed)) as mine:
        for turn in mine:
            with mode.autocast():  # not around the metrics, nor around what makes the batches
                output = _output(loss_fn, model, turn.batch, gradients)
            if turn.counts:
                tally.add(output, turn)
            if should_stop is not None and should_stop():
                assert generators is not None
                seeds.set_rng_state(generators)
                raise EvaluationStopped
        scores, details = tally.results()
    seconds = time.perf_counter() - started
    return EvalRecord(scores, tally.samples, seconds=seconds, details=details)


class _PassScores:
    """The sums of a pass over a feed."""

    def __init__(self, meter: metric_sets.MetricSet | None, collect: bool) -> None:
        self.samples = 0
        """Of this rank, and after `results` of all ranks."""
        self._series: dict[str, _BatchMeans] = {"loss": _BatchMeans()}
        self._meter = meter
        self._collected = Collected() if collect else None

    def add(self, output: LossOutput, turn: EvaluationBatch) -> None:
        found = batch_samples(turn.batch)
        samples = 1 if found is None else found
        weight = resolve_count(output.count, samples)
        for name, value in {"loss": output.loss, **output.parts}.items():
            self._series.setdefault(name, _BatchMeans()).add(turn.number, value, weight)
        self.samples += samples
        if self._meter is not None:
            check_outputs(output.outputs)
            self._meter.update(output.outputs, output.targets)
        if self._collected is not None:
            check_outputs(output.outputs)
            self._collected.add(turn.number, output)

    def results(self) -> tuple[dict[str, float], dict[str, Any]]:
        """Scores and details over all ranks; `DataError` if there was no batch."""
        mine = {name: series.table() for name, series in self._series.items()}
        everywhere = ranks.of_each_part((self.samples, mine), "the other ranks' losses")
        self.samples = sum(samples for samples, _ in everywhere)
        if self.samples == 0:
            raise DataError("there is nothing to evaluate on: the feed yields no batch")
        means = _means([tables for _, tables in everywhere])
        measured: dict[str, float] = {}
        details: dict[str, Any] = {}
        if self._meter is not None:
            with metric_sets.over_ranks(self._meter):
                measured, details = self._meter.compute(), self._meter.details()
        if self._collected is not None:
            details.update(self._collected.tensors())
        return joined(means, measured), details


_Table = npt.NDArray[np.float64]


class _BatchMeans:
    """The batches' values of one name: their means and weights, kept batch by batch and read once,
    since a sum depends on the order of adding."""

    _FOLD = 256

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._latest: list[Tensor] = []
        self._folded: list[Tensor] = []

    def add(self, number: int, value: Tensor, weight: float | Tensor) -> None:
        """Take in the mean `value` of a batch over `weight` samples, tokens or class weights."""
        wide = value.detach() if value.device.type == "mps" else value.detach().double()
        # A mean over nothing (every target ignored) may be NaN, and weighs nothing.
        if isinstance(weight, Tensor):
            weight = weight.detach().reshape(()).to(wide)
            wide = torch.where(weight > 0, wide, torch.zeros_like(wide))
        elif weight == 0:
            return
        else:
            weight = torch.full_like(wide, weight)
        self._numbers.append(number)
        self._latest.append(torch.stack((wide * weight, weight)))
        if len(self._latest) == self._FOLD:
            self._fold()

    def _fold(self) -> None:
        self._folded.append(torch.stack(self._latest))
        self._latest = []

    def table(self) -> _Table:
        """(batches, 3): number of the batch, weighted value, weight."""
        if self._latest:
            self._fold()
        if not self._folded:
            return np.empty((0, 3))
        pairs = torch.cat(self._folded).cpu().double().numpy()
        return np.column_stack((np.array(self._numbers, dtype=np.float64), pairs))


def _means(tables: list[dict[str, _Table]]) -> dict[str, float]:
    """The weighted means of all ranks' batches, each sum in the order of the batches."""
    first_seen: dict[str, tuple[float, int]] = {}
    for found in tables:
        for place, (name, table) in enumerate(found.items()):
            seen = (float(table[0, 0]) if len(table) else math.inf, place)
            first_seen[name] = min(seen, first_seen.get(name, seen))
    means = {}
    for name in sorted(first_seen, key=lambda name: (name != "loss", first_seen[name])):
        table = np.concatenate([found[name] for found in tables if name in found])
        table = table[np.argsort(table[:, 0], kind="stable")]
        # One after the other: numpy's `sum` would add by pairs, otherwise for each length.
        with np.errstate(all="ignore"):  # infinite losses
            total, weight = np.cumsum(table[:, 1:], axis=0)[-1] if len(table) else (0.0, 0.0)
            means[name] = float(total / weight) if weight else math.nan
    return means


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


def joined(means: Mapping[str, float], metrics: Mapping[str, float]) -> dict[str, float]:
    """The means of the loss and of its parts beside the metrics; `ConfigError` for a name that
    both have."""
    if twice := sorted(means.keys() & metrics.keys()):
        raise ConfigError(
            f"{twice[0]!r} is a metric and a part of the loss: rename the part of loss_fn"
        )
    return {**means, **metrics}


def check_outputs(outputs: Any) -> None:
    """Raise `ConfigError` if `loss_fn` gave no outputs, which metrics are computed from."""
    if outputs is None:
        raise ConfigError(
            "metrics need the model's outputs: let loss_fn return "
            "LossOutput(loss, outputs=…, targets=…), or use trueloop.supervised(criterion)"
        )
