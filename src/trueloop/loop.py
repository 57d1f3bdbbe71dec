"""fit and evaluate: the loop around the step, to be read from top to bottom."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import metrics as metric_sets, seed
from trueloop.checkpoint import Checkpoints
from trueloop.errors import ConfigError, DataError, RunError
from trueloop.feed import Feed
from trueloop.records import (
    EvalRecord,
    LossOutput,
    StepRecord,
    batch_samples,
    is_better,
    monitored,
)
from trueloop.step import Step, precision as precisions
from trueloop.step.schedule import resolve_mode
from trueloop.stopping import EarlyStopping, Stop

Sink = Callable[[Any], object]


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


@dataclass
class History:
    """What `fit` returns."""

    records: list[EvalRecord] = field(default_factory=list)
    """One per epoch; scores are named `train_loss`, `val_loss`, `val_accuracy`, …"""
    monitor: str = "val_loss"
    """The score that says which epoch is the best."""
    best_epoch: int | None = None
    """That epoch, from 0; None before the first evaluation."""
    best: float | None = None
    """Its monitored score."""
    status: str = "finished"
    """`finished`, `stopped early`, `out of time` or `interrupted`."""
    updates: int = 0
    skipped: int = 0
    seconds: float = 0.0


def fit(
    step: Step,
    train: Any,
    val: Any = None,
    *,
    epochs: int,
    metrics: Any = None,
    run: Any = None,
    sinks: Sequence[Sink] = (),
    early_stop: EarlyStopping | None = None,
    checkpoints: Checkpoints | None = None,
    max_seconds: float | None = None,
    resume_from: dict[str, Any] | None = None,
) -> History:
    """Train until `epochs` epochs are done: the loop of the README, with its records handed out.

    `train` and `val` are feeds or DataLoaders; `sinks` are callables that receive each
    `StepRecord` and each epoch's `EvalRecord`; `run` is a `trueloop.Run`, whose log becomes a
    sink. Train mode is set once at the start, unless the model already stands in it. Ctrl-C ends
    the run after the update at hand (a second one at once), with everything saved.

    `epochs` counts those that the step has already done. `checkpoints` keeps the best and the last
    state; `resume_from` is a state of `last`, loaded with `load_checkpoint`. `early_stop` starts
    afresh, unless that state has its own. `max_seconds` ends the run after the first update beyond
    that time, evaluated and saved; the scores of an epoch cut short count as the best only if
    there are no others.

    Raises `ConfigError` and `ScheduleError` before the first batch when something cannot fit,
    `NonFiniteError` during the run.
    """
    if isinstance(epochs, bool) or not isinstance(epochs, int) or epochs < 1:
        raise ConfigError(f"epochs={epochs!r} trains nothing: write 1 or more")
    train, val = as_feed(train), None if val is None else as_feed(val)
    step.plan(epochs=epochs, batches=len(train) if train.has_length else None)
    book = _Book(step, train, val, metrics, early_stop, checkpoints)
    book.open(epochs, resume_from)
    if not step.model.training:
        step.model.train()

    with Stop(max_seconds) as stop, _opened(run, step, resume_from) as opened:
        book.sinks = [*opened, *sinks]
        for epoch in range(step.epoch, step.epoch if book.is_over(stop) else epochs):
            for batch in train.epoch(epoch, start=step.batch):
                book.tell(step(batch))
                if stop.is_due():
                    break
            if stop.reason:
                book.save()  # inside an epoch: going on needs this state, not the one after it
            if stop.reason == "interrupted":
                break
            scores = book.evaluate(epoch, cut_short=bool(stop.reason))
            if stop.reason:
                break
            step.end_epoch(scores)
            book.end_epoch(scores)
            if step.epoch < epochs and book.should_stop(stop):
                break
        return book.close(stop.reason or "finished")


@contextmanager
def _opened(run: Any, step: Step, resumed: Any) -> Iterator[list[Any]]:
    """The sinks of a run directory, closed however the run ends.

    The log of a resumed run is cut back to where the state was saved: what was logged after that
    is trained, and logged, again.
    """
    sinks = list(run.sinks()) if run is not None else []
    try:
        if resumed is not None:
            for sink in sinks:
                sink.truncate(step.updates, step.epoch, step.batch)
        yield sinks
    finally:
        for sink in sinks:
            sink.close()


def _check_monitors(book: _Book, step: Step) -> None:
    """Raise before the first batch, not after the first epoch, if only `val` could give a score."""
    if book.val is not None:
        return
    if book.metrics is not None:
        raise ConfigError("metrics are measured on val, and there is none: give val=…")
    watched = {"the monitored score": book.history.monitor}
    if book.early_stop is not None:
        watched["early_stop's"] = book.early_stop.monitor
    if step.monitor is not None:
        watched["the schedule's"] = step.monitor
    for what, name in watched.items():
        if name.startswith("val_"):
            raise ConfigError(
                f"{what} is {name!r}, and there is no val to measure it on: give val=…, or watch "
                "'train_loss'"
            )


# Writing the last state after every epoch of a few milliseconds would cost more than the epochs.
_SAVE_SECONDS = 5.0


class _Book:
    """What `fit` keeps about the run: who is told, the mean loss, the best epoch, what is saved."""

    def __init__(
        self,
        step: Step,
        train: Feed,
        val: Feed | None,
        metrics: Any,
        early_stop: EarlyStopping | None,
        checkpoints: Checkpoints | None,
    ) -> None:
        self.step = step
        self.train = train
        self.val = val
        self.metrics = metrics
        self.early_stop = early_stop
        self.checkpoints = checkpoints
        self.sinks: Sequence[Sink] = ()
        self.history = History(monitor="train_loss" if val is None else "val_loss")
        if checkpoints is not None and checkpoints.keep_best:
            self.history.monitor = checkpoints.keep_best
        elif early_stop is not None:
            self.history.monitor = early_stop.monitor
        _check_monitors(self, step)
        if early_stop is not None:
            early_stop.reset()
        if early_stop is not None and early_stop.monitor == self.history.monitor:
            self.mode = early_stop.mode
        else:
            self.mode = resolve_mode(self.history.monitor, "auto")
        self._losses: list[Tensor] = []
        self._samples: list[int] = []
        self._started = time.perf_counter()
        self._earlier_seconds = 0.0
        self._last_save = time.monotonic()

    def open(self, epochs: int, resume_from: dict[str, Any] | None) -> None:
        """Begin a run, or go on with one; a run that has nothing left to do may only be resumed."""
        if resume_from is not None:
            self.load_state_dict(resume_from)
        elif (done := self.step.epoch) >= epochs:
            raise ConfigError(
                f"the step has done {done} epochs already, and epochs={epochs} counts them: "
                f"write epochs={done + epochs} to train {epochs} more"
            )

    def tell(self, record: StepRecord) -> None:
        """Hand a record to the sinks; remember an update's loss without reading it."""
        if record.updated:
            self._losses.append(record.loss)
            self._samples.append(record.samples)
        for sink in self.sinks:
            sink(record)

    def train_loss(self) -> float:
        """The mean over the epoch's updates, weighted by samples: read once per epoch."""
        if not self._losses:
            return float("nan")
        weights = torch.tensor(self._samples, dtype=torch.float64)
        return float(torch.stack(self._losses).double().cpu() @ weights / weights.sum())

    def evaluate(self, epoch: int, *, cut_short: bool) -> EvalRecord:
        """Score the epoch, tell the sinks, and keep the weights if it is the best."""
        step = self.step
        if not step.batch:
            raise DataError("there is nothing to train on: the feed yields no batch")
        step.flush()
        scores, samples, seconds, details = {"train_loss": self.train_loss()}, 0, 0.0, {}
        if self.val is not None:
            found = evaluate(
                step.model, self.val, step.loss_fn, self.metrics, precision=step.precision.name
            )
            scores |= {f"val_{name}": value for name, value in found.scores.items()}
            samples, seconds, details = found.samples, found.seconds, found.details
        record = EvalRecord(scores, samples, epoch, step.updates, seconds, details)
        for sink in self.sinks:
            sink(record)
        self._note(record, cut_short)
        return record

    def _note(self, record: EvalRecord, cut_short: bool) -> None:
        history = self.history
        history.records.append(record)
        value = monitored(record.scores, history.monitor)
        if cut_short and history.best is not None:
            return  # the run may go on from within the epoch, and never stand here
        if is_better(value, history.best, self.mode):
            history.best, history.best_epoch = value, record.epoch
            if self.checkpoints is not None:
                state = {"model": self.step.model.state_dict(), "scores": record.scores}
                self.checkpoints.save("best", {**state, "epoch": record.epoch})

    def end_epoch(self, record: EvalRecord) -> None:
        """After the schedules ticked: early stopping looks, and the state is saved now and then."""
        self._losses, self._samples = [], []
        if self.early_stop is not None:
            self.early_stop(record, self.step.model)
        if time.monotonic() - self._last_save > _SAVE_SECONDS:
            self.save()

    def is_over(self, stop: Stop) -> bool:
        """Whether early stopping has ended the run, maybe before it was resumed."""
        if self.early_stop is not None and self.early_stop.is_over:
            stop.reason = "stopped early"
        return bool(stop.reason)

    def should_stop(self, stop: Stop) -> bool:
        """Whether an ended epoch is the run's last before its time."""
        if self.is_over(stop):
            return True
        if stop.is_due():
            self.save()
        return bool(stop.reason)

    def save(self) -> None:
        """Write `last`: everything from which this run goes on as itself."""
        if self.checkpoints is None:
            return
        for sink in self.sinks:
            flush = getattr(sink, "flush", None)
            if flush is not None:
                flush()
        self.checkpoints.save("last", self.state_dict())
        self._last_save = time.monotonic()

    def close(self, status: str) -> History:
        """The end: save, bring back the best weights, let the run's log be complete."""
        if status in ("finished", "stopped early"):
            self.save()
        if self.early_stop is not None and status != "interrupted":
            self.early_stop.bring_back(self.step.model)
        history, step = self.history, self.step
        history.status, history.updates, history.skipped = status, step.updates, step.skipped
        history.seconds = self._seconds()
        return history

    def _seconds(self) -> float:
        return self._earlier_seconds + time.perf_counter() - self._started

    def state_dict(self) -> dict[str, Any]:
        state = self.step.state_dict()
        history = self.history
        return {
            "model": state.pop("model"),
            "step": state,
            "rng": seed.rng_state(),
            "feed": self.train.state_dict(),
            "early_stop": None if self.early_stop is None else self.early_stop.state_dict(),
            "losses": torch.stack(self._losses).cpu() if self._losses else None,
            "samples": list(self._samples),
            "seconds": self._seconds(),
            "best": [history.monitor, history.best, history.best_epoch],
            "records": [
                [record.scores, record.samples, record.epoch, record.update, record.seconds]
                for record in history.records
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "step" not in state:
            raise RunError(
                "this checkpoint holds weights alone, no state to go on from: use last.pt"
            )
        self.step.load_state_dict({"model": state["model"], **state["step"]})
        self.train.load_state_dict(state["feed"])
        if self.early_stop is not None and state["early_stop"] is not None:
            self.early_stop.load_state_dict(state["early_stop"])
        losses = state["losses"]
        self._losses = [] if losses is None else list(losses.to(self.step.device).unbind())
        self._samples = list(state["samples"])
        self._earlier_seconds = state["seconds"]
        _, self.history.best, self.history.best_epoch = state["best"]
        self.history.records = [EvalRecord(*fields) for fields in state["records"]]
        seed.set_rng_state(state["rng"])
