"""What `fit` keeps about a run: who is told, the mean loss, the best epoch, what is saved."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from trueloop import ranks
from trueloop.checkpoint import Checkpoints, WriteError, capture, place_of, restore
from trueloop.errors import ConfigError, DataError, RunError
from trueloop.evaluation import EpochScores, EvaluationStopped
from trueloop.feed import Feed
from trueloop.records import EvalRecord, StepRecord, is_better, loss_beside, monitored
from trueloop.step import Step
from trueloop.step.schedule import resolve_mode
from trueloop.stopping import EarlyStopping, Stop

Sink = Callable[[Any], object]


@dataclass
class History:
    """What `fit` returns.

    Attributes:
        records: one per epoch; scores are named `train_loss`, `val_loss`, `val_accuracy`, …
        monitor: the score that says which epoch is the best.
        best_epoch: that epoch, from 0; None before the first evaluation.
        best: its monitored score.
        status: `finished`, `stopped early`, `out of time` or `interrupted`.
        signal: the number of the signal that interrupted the run; None if none did.
        updates: updates applied, by earlier parts of a resumed run too.
        skipped: updates left out because their gradient was not finite.
        seconds: wall time of the training, of a resumed run in all.
    """

    records: list[EvalRecord] = field(default_factory=list)
    monitor: str = "val_loss"
    best_epoch: int | None = None
    best: float | None = None
    status: str = "finished"
    signal: int | None = None
    updates: int = 0
    skipped: int = 0
    seconds: float = 0.0


class Book:
    """What `fit` keeps about the run: who is told, the mean loss, the best epoch, what is saved."""

    def __init__(
        self,
        step: Step,
        train: Feed,
        scoring: EpochScores,
        early_stop: EarlyStopping | None,
        checkpoints: Checkpoints | None,
    ) -> None:
        self.step = step
        self.train = train
        self.scoring = scoring
        self.early_stop = early_stop
        self.checkpoints = checkpoints
        self.sinks: Sequence[Sink] = ()
        self.history = History(monitor="train_loss" if scoring.val is None else "val_loss")
        if checkpoints is not None:
            scoring.check_resumable()
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
        self._started = time.perf_counter()
        self._earlier_seconds = 0.0
        self._saved: tuple[int, int, int] | None = None
        self._best: dict[str, Any] | None = None
        """What `best.json` should say of the epoch just ended, if it is the best."""

    def open(self, epochs: int, resume_from: dict[str, Any] | None) -> None:
        """Begin a run, or go on with one; a run that has nothing left to do may only be resumed."""
        if resume_from is not None:
            self.load_state_dict(resume_from)
        if self.checkpoints is not None:
            here = None if resume_from is None else place_of(self.step)
            if self.checkpoints.begin(here):
                self._saved = here  # to write it again could only harm it
        if resume_from is not None:
            return
        if (done := self.step.epoch) >= epochs:
            raise ConfigError(
                f"the step has done {done} epochs already, and epochs={epochs} counts them: "
                f"write epochs={done + epochs} to train {epochs} more"
            )

    def tell(self, record: StepRecord) -> None:
        """Hand a record to the sinks; remember an update's loss without reading it."""
        if record.updated:
            self.scoring.add(record)
        for sink in self.sinks:
            sink(record)
        ranks.here.move("waiting for data", update=self.step.updates)
        saved = self.checkpoints
        if saved is None or not record.updated:
            return
        saved.poll()
        if saved.is_due(updates=record.update):
            self.save()
        else:
            saved.prepare(self.state_dict)

    def is_between_updates(self) -> bool:
        """Whether the run may end here. One process can save an open window; of many ranks, each
        has a gradient of its own in it."""
        return not (ranks.is_distributed() and self.step.is_accumulating)

    def evaluate(self, epoch: int, stop: Stop) -> EvalRecord | None:
        """Score the epoch, tell the sinks, and keep the weights if it is the best; None if a signal
        has ended the evaluation. The clock ends none."""
        if not self.step.batch:
            raise DataError("there is nothing to train on: the feed yields no batch")
        ranks.here.move("evaluating")
        cut_short = bool(stop.reason)

        def is_interrupted() -> bool:
            ranks.here.move()
            return stop.is_due() and stop.reason == "interrupted"

        try:
            record = self.scoring.evaluate(epoch, is_interrupted)
        except EvaluationStopped:
            return None
        if not cut_short:
            stop.reason = ""  # time that is up is asked for again at the epoch's end
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
        losses = {
            "loss": loss_beside(record.scores, history.monitor),
            "best_loss": loss_beside(self._best_scores(), history.monitor),
        }
        if is_better(value, history.best, self.mode, **losses):
            history.best, history.best_epoch = value, record.epoch
            if self.checkpoints is not None and self.checkpoints.keep_best:
                self._best = {"epoch": record.epoch, "scores": record.scores}
                if cut_short:
                    self.checkpoints.mark_best(place_of(self.step), self._best)

    def _best_scores(self) -> dict[str, float]:
        """The scores of the best epoch so far; none before the first evaluation."""
        best = self.history.best_epoch
        return next((r.scores for r in self.history.records if r.epoch == best), {})

    def end_epoch(self, record: EvalRecord) -> None:
        """After the schedules ticked: early stopping looks, and the state is saved now and then."""
        self.scoring.reset()
        if self.early_stop is not None:
            self.early_stop(record, self.step.model)
        saved, step = self.checkpoints, self.step
        if saved is not None and (
            self._best is not None or saved.is_due(updates=step.updates, epochs=step.epoch)
        ):
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
        """Write everything from which this run goes on as itself, unless that is done."""
        if self.checkpoints is None or self._saved == place_of(self.step):
            return
        best, self._best = self._best, None
        self._saved = place_of(self.step)
        try:
            ranks.on_all(self._flush, "the writing of the log")
        except WriteError as error:
            # A state that the log does not reach is none to go on from.
            self.checkpoints.miss(error)
            return
        self.checkpoints.save(self.state_dict(), self._saved, best)

    def _flush(self) -> None:
        for sink in self.sinks:
            flush = getattr(sink, "flush", None)
            if flush is not None:
                flush()

    def close(self, status: str) -> History:
        """The end: save, bring back the best weights, let the run's log be complete."""
        if status in ("finished", "stopped early"):
            self.save()
        if self.checkpoints is not None:
            self.checkpoints.wait()
        if self.early_stop is not None and status != "interrupted":
            self.early_stop.bring_back(self.step.model)
        history, step = self.history, self.step
        step.resumed = step.batch > 0  # another `fit` goes on there
        history.status, history.updates, history.skipped = status, step.updates, step.skipped
        history.seconds = ranks.from_main(self._seconds(), "the time that rank 0 has measured")
        return history

    def _seconds(self) -> float:
        return self._earlier_seconds + time.perf_counter() - self._started

    def state_dict(self) -> dict[str, Any]:
        history = self.history
        return {
            **capture(self.step, self.train),
            "early_stop": None if self.early_stop is None else self.early_stop.state_dict(),
            "train": self.scoring.state_dict(),
            "seconds": self._seconds(),
            "best": [history.monitor, history.best, history.best_epoch],
            "records": [
                [record.scores, record.samples, record.epoch, record.update, record.seconds]
                for record in history.records
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "step" in state and "records" not in state:
            raise RunError(
                "this state was saved by a loop of your own: go on with Checkpoints.resume there"
            )
        if "train" in state:
            try:
                self.scoring.load_state_dict(state["train"])
            except Exception as error:  # of a metric of the user's own
                why = " ".join(f"{type(error).__name__}: {error}".split())[:160]
                raise RunError(
                    f"train_metrics do not take what the checkpoint holds of them ({why}): build "
                    "them as they were"
                ) from error
        named = None if self.checkpoints is None else self.checkpoints.state
        state = restore(state, self.step, self.train, named)
        if self.early_stop is not None and state["early_stop"] is not None:
            self.early_stop.load_state_dict(state["early_stop"])
        self._earlier_seconds = state["seconds"]
        _, self.history.best, self.history.best_epoch = state["best"]
        self.history.records = [EvalRecord(*fields) for fields in state["records"]]


def _check_monitors(book: Book, step: Step) -> None:
    """Raise before the first batch, not after the first epoch, if only `val` could give a score."""
    if book.scoring.val is not None:
        return
    if book.scoring.metrics is not None:
        raise ConfigError(
            "metrics are measured on val, and there is none: give val=…, or train_metrics=…"
        )
    watched = {"the monitored score": book.history.monitor}
    if book.early_stop is not None:
        watched["early_stop's"] = book.early_stop.monitor
    for what, name in [*watched.items(), *(("the schedule's", name) for name in step.monitors)]:
        if name.startswith("val_"):
            raise ConfigError(
                f"{what} is {name!r}, and there is no val to measure it on: give val=…, or watch "
                "'train_loss'"
            )
