"""The state of `fit`: the run's history, its counts and mean losses, and what is due."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from trueloop import ranks, reprs
from trueloop.checkpoint import Checkpoints, capture, restore
from trueloop.errors import ConfigError, DataError, Interrupted, RunError
from trueloop.evaluation import EpochScores, EvaluationStopped
from trueloop.feed import Feed
from trueloop.lengths import Interval
from trueloop.loop.clock import EVALUATION, LINE, SAVE, RunClock, Stopwatch
from trueloop.loop.line import LogLine
from trueloop.loop.saving import RunSaver
from trueloop.records import EvalRecord, StepRecord, is_better, loss_beside, monitored
from trueloop.step import Step
from trueloop.step.schedule import resolve_mode
from trueloop.stopping import EarlyStopping, Stop

Sink = Callable[[Any], object]

_BARREN = 2
"""Epochs in a row without one update, after which a run whose length is in updates is hopeless."""


@dataclass(repr=False)
class History:
    """The result of `fit`.

    Attributes:
        records: one per evaluation; scores are named `train_loss`, `val_loss`, `val_accuracy`, …
        monitor: the score that says which evaluation is the best.
        best_epoch: the epoch of that evaluation, from 0; None before the first.
        best_update: how many updates had been applied at it.
        best: its monitored score.
        status: `finished`, `stopped early`, `out of time`, `stopped` (by `Step.stop`) or
            `interrupted`.
        reason: the argument of `Step.stop`; empty otherwise.
        signal: the number of the signal that interrupted the run; None if none did.
        updates: updates applied, by earlier parts of a resumed run too.
        samples: samples in them, of all ranks.
        tokens: tokens in them (`StepRecord.tokens`).
        skipped: updates skipped because their gradient was not finite, or an outlier.
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
    best_update: int | None = None
    samples: int = 0
    tokens: int = 0
    reason: str = ""

    def __repr__(self) -> str:
        return reprs.described(self, *self._facts())

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for one in self.records for name in one.scores))
        rows = [
            (
                "" if one.epoch is None else str(one.epoch),
                "" if one.update is None else f"{one.update:,}",
                *(reprs.short(one[name]) if name in one.scores else "" for name in names),
            )
            for one in self.records
        ]
        return reprs.html_table(", ".join(self._facts()), ("epoch", "update", *names), rows)

    def _facts(self) -> list[str]:
        status = f"{self.status}: {self.reason}" if self.reason else self.status
        facts = [status, f"{self.updates:,} updates"]
        if self.skipped:
            facts.append(f"{self.skipped:,} skipped")
        if self.best is not None:
            where = f" (best_epoch={self.best_epoch})" if self.best_epoch is not None else ""
            facts.append(f"best {self.monitor} {reprs.short(self.best)}{where}")
        return [*facts, f"{self.seconds:,.1f} s"]


class FitState:
    """The state of `fit`: the run's history, its counts and mean losses, and what is due.

    `intervals` says how often something is due (`RunClock`); None for an evaluation is at the end
    of each epoch, for a line of the log each update, for a save as `Checkpoints` has it.
    """

    def __init__(
        self,
        step: Step,
        train: Feed,
        scoring: EpochScores,
        early_stop: EarlyStopping | None,
        checkpoints: Checkpoints | None,
        intervals: Mapping[str, Interval | None],
        length: Interval,
    ) -> None:
        self.step = step
        self.train = train
        self.scoring = scoring
        self.early_stop = early_stop
        intervals = {**intervals, EVALUATION: intervals.get(EVALUATION) or Interval(1, "epochs")}
        self._seconds = Stopwatch()
        self.clock = RunClock(intervals, self._seconds, length)
        self.sinks: Sequence[Sink] = ()
        self.history = History(monitor="train_loss" if scoring.val is None else "val_loss")
        if checkpoints is not None:
            scoring.check_resumable()
        if checkpoints is not None and checkpoints.keep_best:
            self.history.monitor = checkpoints.keep_best
        elif early_stop is not None:
            self.history.monitor = early_stop.monitor
        _check_monitors(self, step)
        _check_update_bn(step, train)
        if early_stop is not None:
            early_stop.reset()
        if early_stop is not None and early_stop.monitor == self.history.monitor:
            self.mode = early_stop.mode
        else:
            self.mode = resolve_mode(self.history.monitor, "auto")
        self.saver = RunSaver(step, checkpoints, intervals.get(SAVE) is not None)
        self._line = None if intervals.get(LINE) is None else LogLine()
        self._barren, self._updates_before = 0, 0

    def open(self, resume_from: dict[str, Any] | None) -> None:
        """Begin a run, or resume one; a run that has nothing left to do may only be resumed."""
        if resume_from is not None:
            self.load_state_dict(resume_from)
        self.clock.start(self.step)
        self._updates_before = self.step.updates
        self.saver.begin(is_resumed=resume_from is not None)
        length, step = self.clock.length, self.step
        if resume_from is not None or not self.clock.is_over(step):
            return
        done = step.epoch if length.unit == "epochs" else step.updates
        amount = int(length.amount)
        raise ConfigError(
            f"the step has done {done} {length.unit} already, and {length.unit}={amount} counts "
            f"them: write {length.unit}={done + amount} to train {amount} more"
        )

    def begin_sinks(self, sinks: Sequence[Any]) -> None:
        """Tell those that have a method `begin` where the run starts; of many ranks, on the main
        one."""

        def begin() -> None:
            for sink in sinks:
                if (told := getattr(sink, "begin", None)) is not None:
                    counts = {"samples": self.clock.samples, "tokens": self.clock.tokens}
                    told(updates=self.step.updates, **counts, seconds=self._seconds.earlier)

        ranks.on_main(begin, "the start of the sinks")
        self._seconds.begin()  # a tracker may take seconds to open its store

    def add(self, record: StepRecord, last: bool) -> None:
        """After the sinks have a record: count its update, whose loss is not read, and do, or note,
        what is due; `last` is whether its batch is the last of the epoch."""
        if record.updated:
            self.scoring.add(record)
        elif not record.skipped:
            return
        clock, updates = self.clock, self.step.updates
        due = clock.tick(record, last)
        # The end of a run is evaluated; where that is an epoch's end too, as `end_epoch` does it.
        ends = record.updated and not last and clock.reaches(self.step.epoch, updates)
        clock.evaluation_due = EVALUATION in due or ends
        if self._line is not None:
            self._line.add(record)
            if LINE in due:
                self._line.write(record, self.sinks)
        if record.updated and self.saver.is_on:
            self.saver.poll()
            self.saver.is_due = SAVE in due
            if self.saver.is_due and not clock.evaluation_due:
                self.save()
            else:
                self.saver.prepare(self.state_dict)

    def with_samples(self, record: StepRecord) -> StepRecord:
        """The record of a step with outliers, whose check can then be asked for the samples."""
        check = record.outlier
        assert check is not None
        batches = record.batch + 1 - check.first
        samples = partial(self.train.sample_indices, record.epoch, check.first, batches)
        return record._replace(outlier=check._replace(samples=samples))

    def ends(self, stop: Stop) -> bool:
        """Whether the run ends here, after a batch: for a signal or the clock; or, once the
        evaluation that is due is made, because it is as long as asked, or no longer improves."""
        is_open = self.step.is_accumulating
        # One process can save an open window; of many ranks, each has its own gradient in it.
        can_end = not (is_open and ranks.is_distributed())
        if can_end and stop.is_due(between_updates=not is_open):
            return True
        if not self.clock.evaluation_due:
            return self.is_over(stop)
        self.evaluate_if_due(stop)
        # A sink may ask for the end when it sees the scores.
        return self.is_over(stop) or (can_end and stop.is_due(between_updates=not is_open))

    def evaluate_if_due(self, stop: Stop) -> None:
        """Evaluate where the current update asks for it, and save what is to be saved with it."""
        if self.clock.evaluation_due and not stop.reason and self._evaluate(stop):
            self._save_if_due()

    def end_epoch(self, stop: Stop) -> None:
        """The epoch has no further batch: evaluate it if that is due, tick its schedule, save."""
        step, clock = self.step, self.clock
        if not step.batch:
            raise DataError("there is nothing to train on: the feed yields no batch")
        ended = step.epoch + 1
        due = clock.is_epochs(EVALUATION, ended)
        due = due or (clock.reaches(ended, step.updates) and not self._is_evaluated())
        if due and not self._evaluate(stop):
            return
        step.end_epoch(evaluated=False)
        clock.at_last_batch = False
        self._check_progress()
        self.saver.is_due = clock.is_epochs(SAVE, step.epoch)
        self._save_if_due()
        if not self.is_over(stop) and stop.is_due():
            self.save()

    def _check_progress(self) -> None:
        """Raise `RunError` where a run that ends after so many updates makes no more of them."""
        step = self.step
        self._barren = 0 if step.updates > self._updates_before else self._barren + 1
        self._updates_before = step.updates
        if self.clock.length.unit != "epochs" and self._barren == _BARREN:
            raise RunError(
                f"the last {_BARREN} epochs had no update that could be applied (their gradients "
                f"were not finite), and the run ends after {self.clock.length}, which it would "
                "never reach: lower the learning rate, or look at the data"
            )

    def is_over(self, stop: Stop) -> bool:
        """Whether the run is as long as asked, or has come to its end before; early stopping may
        have ended it before it was resumed."""
        if stop.reason or self.clock.is_over(self.step):
            return True
        if self.early_stop is not None and self.early_stop.is_over:
            stop.reason = "stopped early"
        return bool(stop.reason)

    def _is_evaluated(self) -> bool:
        """Whether the weights as they are now have been evaluated."""
        records = self.history.records
        return bool(records) and records[-1].update == self.step.updates

    def _evaluate(self, stop: Stop, *, cut_short: bool = False) -> bool:
        """Score the model, hand the record to the sinks, note the best, step a metric schedule, and
        let early stopping look; False if a signal has ended the evaluation, which is then as if it
        had not begun. The clock ends none. `cut_short`: a resumed run starts before it."""
        with self.step.evaluating():
            return self._evaluated(stop, cut_short)

    def _evaluated(self, stop: Stop, cut_short: bool) -> bool:
        step = self.step
        ranks.here.move("evaluating")

        def is_interrupted() -> bool:
            ranks.here.move()
            return stop.is_due() and stop.reason == "interrupted"

        epoch = step.epoch - 1 if step.epoch and not step.batch else step.epoch
        if step.needs_update_bn:
            with closing(self.train.whole_batches(epoch)) as batches:
                step.update_bn(batches)
        try:
            record = self.scoring.evaluate(epoch, is_interrupted)
        except EvaluationStopped:
            return False
        if not cut_short:
            stop.reason = ""  # time that is up is asked for again after it
        for sink in self.sinks:
            sink(record)
        self._note(record, cut_short)
        if cut_short:
            return True
        self.clock.evaluation_due = False
        step.end_evaluation(record)
        self.scoring.reset()
        if self.early_stop is not None:
            self.early_stop(record, step.model)
        return True

    def _note(self, record: EvalRecord, cut_short: bool) -> None:
        history = self.history
        history.records.append(record)
        value = monitored(record.scores, history.monitor)
        if cut_short and history.best is not None:
            return  # the run may resume from before it, and never be here
        losses = {
            "loss": loss_beside(record.scores, history.monitor),
            "best_loss": loss_beside(self._best_scores(), history.monitor),
        }
        if is_better(value, history.best, self.mode, **losses):
            history.best = value
            history.best_epoch, history.best_update = record.epoch, record.update
            self.saver.note_best(record, is_saved=cut_short)

    def _best_scores(self) -> dict[str, float]:
        """The scores of the best evaluation so far; none before the first."""
        best = self.history.best_epoch, self.history.best_update
        records = self.history.records
        return next((r.scores for r in records if (r.epoch, r.update) == best), {})

    def _save_if_due(self) -> None:
        """After an evaluation or an epoch."""
        if self.saver.has_something():
            self.save()

    def save(self) -> None:
        """Write everything from which this run resumes as itself, unless that is done."""
        self.saver.save(self.state_dict, self.sinks)

    def close(self, stop: Stop) -> History:
        """The end: a last evaluation and save, the best weights brought back, the log complete."""
        status = stop.reason or "finished"
        missing = not self._is_evaluated() if status == "finished" else self.clock.evaluation_due
        if missing and status in ("finished", "out of time", "stopped"):
            self._evaluate(stop)
        self.save()
        if status in ("out of time", "stopped") and not self._is_evaluated():
            self._evaluate(stop, cut_short=True)
        status = "interrupted" if stop.signal is not None else status
        self.saver.wait()
        self.step.eval_weights()
        if self.early_stop is not None and status != "interrupted":
            self.early_stop.bring_back(self.step.model)
        history = self.concluded(status)
        history.signal = stop.signal
        history.reason = stop.words if status == "stopped" else ""
        history.seconds = ranks.from_main(self._seconds(), "the time that rank 0 has measured")
        return history

    def leave(self, error: Interrupted) -> None:
        """Add to an interruption how far the run came, and how to resume it."""
        error.history = self.concluded("interrupted")
        error.args = tuple(filter(None, (*error.args, self.saver.how_to_resume())))

    def concluded(self, status: str) -> History:
        """The history with the counts of what was trained; the next `fit` continues there."""
        history, step = self.history, self.step
        step.resumed = step.batch > 0
        history.status, history.updates, history.skipped = status, step.updates, step.skipped
        history.samples, history.tokens = self.clock.samples, self.clock.tokens
        history.seconds = self._seconds()
        return history

    def results(self, failure: BaseException | None) -> dict[str, Any]:
        """The content of the run's results.json; `failure` is what has ended the run."""
        history, step = self.history, self.step
        interrupted = isinstance(failure, Interrupted)
        place = history.best_epoch, history.best_update
        best = next((one for one in history.records if (one.epoch, one.update) == place), None)
        results = {
            "status": history.status if failure is None or interrupted else "failed",
            "best_epoch": None if history.best_epoch is None else history.best_epoch + 1,
            "best_update": history.best_update,
            "epochs": step.epoch,
            "evaluations": len(history.records),
            "updates": step.updates,
            "tokens": self.clock.tokens,
            "seconds": self._seconds(),
            "monitor": history.monitor,
            "scores": {} if best is None else dict(best.scores),
            "parameters": sum(p.numel() for p in step.model.parameters()),
        }
        if failure is not None and not interrupted:
            results["error"] = str(failure) or type(failure).__name__
        return results | ({"reason": history.reason} if history.reason else {})

    def state_dict(self) -> dict[str, Any]:
        history = self.history
        return {
            **capture(self.step, self.train),
            "early_stop": None if self.early_stop is None else self.early_stop.state_dict(),
            "train": self.scoring.state_dict(),
            "seconds": self._seconds(),
            "best": [history.monitor, history.best, history.best_epoch],
            "best_update": history.best_update,
            "clock": self.clock.state_dict(),
            "line": None if self._line is None else self._line.state_dict(),
            "records": [
                [record.scores, record.samples, record.epoch, record.update, record.seconds]
                for record in history.records
            ],
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        if "step" in state and "records" not in state:
            raise RunError(
                "this state was saved by a loop of your own: continue with Checkpoints.resume there"
            )
        if "train" in state:
            try:
                self.scoring.load_state_dict(state["train"])
            except Exception as error:  # of a metric of the user's own
                why = " ".join(f"{type(error).__name__}: {error}".split())[:160]
                raise RunError(
                    f"train_metrics cannot load their state from the checkpoint ({why}): give fit "
                    "the same metrics as when the run began"
                ) from error
        state = restore(state, self.step, self.train, self.saver.named)
        if self.early_stop is not None and state["early_stop"] is not None:
            self.early_stop.load_state_dict(state["early_stop"])
        self._seconds.earlier = state["seconds"]
        history = self.history
        history.records = [EvalRecord(*fields) for fields in state["records"]]
        _, history.best, history.best_epoch = state["best"]
        by_epoch = {record.epoch: record.update for record in history.records}
        history.best_update = state.get("best_update", by_epoch.get(history.best_epoch))
        if "clock" in state:
            self.clock.load_state_dict(state["clock"])
        if self._line is not None and state.get("line") is not None:
            self._line.load_state_dict(state["line"], self.step.device)


def _check_monitors(state: FitState, step: Step) -> None:
    """Raise before the first batch, not after the first epoch, if only `val` could give a score."""
    if state.scoring.val is not None:
        return
    if state.scoring.metrics is not None:
        raise ConfigError(
            "metrics are measured on val, and there is none: give val=…, or train_metrics=…"
        )
    watched = {"the monitored score": state.history.monitor}
    if state.early_stop is not None:
        watched["early_stop's"] = state.early_stop.monitor
    for what, name in [*watched.items(), *(("the schedule's", name) for name in step.monitors)]:
        if name.startswith("val_"):
            raise ConfigError(
                f"{what} is {name!r}, and fit has no val to measure it on: give val=…, or watch "
                "'train_loss'"
            )


def _check_update_bn(step: Step, train: Feed) -> None:
    """Raise before the first batch if `train` cannot be gone through for batch norm as well."""
    if step.updates_bn and train.sample_indices(0, 0) is None:
        raise ConfigError(
            "SWA computes batch norm's statistics in a separate pass over train, which would "
            "disturb the position of a loader or a stream: give Feed(dataset, ...), or write "
            "average=EMA(0.999)"
        )
