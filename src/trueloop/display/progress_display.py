"""The output of a run while it trains: one live line at a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

import torch

from trueloop.display.pace import LineThrottle, SampleRate, SkippedUpdates
from trueloop.display.screens import Screen, Status, standard_output
from trueloop.formatting import clock, duration, number, score_name
from trueloop.records import EvalRecord, StepRecord, direction, is_better, loss_beside
from trueloop.step.deferred_reads import DeferredReads

_Show = Callable[[StepRecord], None]

_REFRESH = 0.25
"""Seconds between two looks at the tensors, at the least."""
_COST = 1 / 200
"""Share of the time that these looks may take: where the terminal is slow, they are fewer."""
_HEARTBEAT = 60.0
"""Without a terminal: seconds after which a long epoch gives a sign of life."""

ELLIPSIS = "  …"


class ProgressDisplay:
    """A sink for `StepRecord` and `EvalRecord` that shows how the run is going.

    At a terminal or in a notebook a live line shows the epoch or update, loss, gradient norm,
    learning rate, samples per second and the time left; elsewhere plain lines are printed. The
    scores of an evaluation become a permanent line at a pace that one can read, however short the
    epochs are; with `fit(log_every=…)` so does each line of the log. Tensors are read at most four
    times a second and for these lines; those on a CUDA device are copied to the host meanwhile and
    read at a later update, so that training never waits for its own display. Use it as a context
    manager, or call `close()`: a terminal is left as it was found.

    Args:
        epochs: the length of the run; give one of the three.
        updates: the length of the run in updates.
        tokens: the length of the run in tokens.
        by_epochs: name evaluations by their epoch, not by their update.
        batches: micro-batches in an epoch; None: learned from the first epoch.
        monitor: the score that decides which evaluation is the best.
        all_of: a run of at most so many evaluations has a line for each, whatever their pace.
        screen: where it appears; None: standard output.
    """

    def __init__(
        self,
        *,
        epochs: int | None = None,
        updates: int | None = None,
        tokens: int | None = None,
        by_epochs: bool = True,
        batches: int | None = None,
        monitor: str | None = None,
        all_of: int = 0,
        screen: Screen | None = None,
    ) -> None:
        lengths = {"epoch": epochs, "update": updates, "token": tokens}
        self._unit, self._length = next((u, n) for u, n in lengths.items() if n is not None)
        self._by_epochs = by_epochs and epochs is not None
        self._tokens = 0
        self.batches = batches
        self.monitor = monitor
        self._screen = screen or standard_output()
        self._reads: DeferredReads[tuple[StepRecord, _Show]] = DeferredReads(alike=False)
        self._record: StepRecord | None = None
        self._best: float | None = None
        self._best_loss = math.nan
        self._best_at: EvalRecord | None = None
        self._unsaid: str | None = None
        self._scores = ""
        self._pace = LineThrottle(all_of)
        self._speed = SampleRate(time.perf_counter())
        self._skips = SkippedUpdates()
        self._first = (0, 0)
        self._pause = _REFRESH
        self._ended_at: float | None = None
        self._began: tuple[float, float] | None = None
        self._refreshed = self._spoke = time.perf_counter()

    def __call__(self, record: StepRecord | EvalRecord) -> None:
        """Show a record.

        Args:
            record: what `fit` hands to its sinks.
        """
        if isinstance(record, EvalRecord):
            self._ended(record)
            return
        now = time.perf_counter()
        if record.updated:
            self._tokens += record.tokens
        if self._began is None:
            # Counted from here on: how long the first batch took, start-up included, is no measure.
            self._began = (now, self._done(record))
            self._first = (record.epoch, record.batch)
            self._speed = SampleRate(now)
        elif self._ended_at is not None:
            # Between two epochs others may have drawn pictures or saved: that is no training.
            self._speed.idle += now - self._ended_at
            self._ended_at = None
        elif record.updated or record.skipped:
            self._speed.samples += record.samples
        self._record = record
        if record.skipped:
            said = self._skips.line_for(record, now)
            if said is not None:
                self._print(said, style="yellow")
        if self._reads.sent:
            self._show_what_arrived()
        if now - self._refreshed >= self._pause:
            self._refresh(now)

    def close(self) -> None:
        """Say what is still to be said and give the terminal back. Closing twice is fine."""
        self._show_what_arrived(wait=True)
        self._screen.close()
        for line in (self._skips.rest(), self._unsaid, self._best_line()):
            if line is not None:
                self._print(line)
        self._unsaid = self._best = self._best_at = None

    def line(self, record: StepRecord, updates: int) -> None:
        """Print a line of the log.

        Args:
            record: with the means over its updates.
            updates: how many they are.
        """
        self._read(record, self._log_line)
        self._refreshed = time.perf_counter()

    def end(
        self, status: str, updates: int, seconds: float, reason: str = "", how: str = ""
    ) -> None:
        """Close, and print how the run ended.

        Args:
            status: of the history.
            updates: how many were applied.
            seconds: wall time of the training.
            reason: why the program stopped the run.
            how: how to resume it.
        """
        self.close()
        done = f"{updates:,} update{'' if updates == 1 else 's'}"
        why = f": {reason}" if reason else ""
        rest = f"; {how}" if how else ""
        self._print(f"{status} after {done}, {duration(seconds)}{why}{rest}")

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, kind: object, *failure: object) -> None:
        if kind is not None:
            self._reads.clear()  # the device may be what failed
        self.close()

    def _read(self, record: StepRecord, show: _Show) -> None:
        """Have a record shown: now, or, where its tensors are on a CUDA device, once they have
        been copied to the host."""
        if not record.loss.is_cuda:
            show(record)
            return
        norm = () if record.grad_norm is None else (record.grad_norm,)
        values = (record.loss, *norm, *record.parts.values())
        together = torch.stack([v.detach().to(record.loss.device).double() for v in values])
        self._reads.send(together, (record, show))

    def _show_what_arrived(self, *, wait: bool = False) -> None:
        for together, (record, show) in self._reads.due(wait=wait):
            loss, *rest = together.unbind()
            norm = None if record.grad_norm is None else rest.pop(0)
            parts = dict(zip(record.parts, rest, strict=True))
            show(record._replace(loss=loss, grad_norm=norm, parts=parts))

    def _done(self, record: StepRecord) -> float:
        """How much of the run's length, in its unit, is done with this batch."""
        if self._unit == "update":
            return record.update
        if self._unit == "token":
            return self._tokens
        batch = record.batch + 1
        return record.epoch + min(1.0, batch / self.batches if self.batches else 0.0)

    def _left(self, now: float) -> float | None:
        """Seconds until the end at the pace so far; None before there is one."""
        if self._began is None or self._record is None:
            return None
        then, start = self._began
        done = self._done(self._record) - start
        if done <= 0 or now - then < 2 * _REFRESH:
            return None
        return (now - then) / done * (self._length - start - done)

    def _ended(self, record: EvalRecord) -> None:
        """An evaluation is made: remember its scores, and say them if it is time to."""
        now = time.perf_counter()
        if self._record is not None and self.batches is None and self._by_epochs:
            self.batches = self._record.batch + 1
        self._speed.idle += record.seconds
        self._ended_at = now
        best = self._is_best(record)
        head = self._head(record.epoch, record.update)
        self._scores = self._choice(record.scores, len(head))
        line = self._unsaid = f"{head}  {self._scores}"
        if record.epoch is None or self._pace.due(self._share(record), best, now):
            self._print(line)
            self._unsaid = None
        if now - self._refreshed >= self._pause:
            self._refresh(now)

    def _choice(self, scores: dict[str, float], used: int) -> str:
        """As many scores as fit in one line: the losses, the monitored one, then the others; an
        ellipsis replaces the rest."""
        wanted = ["train_loss", "val_loss", self.monitor or "", *scores]
        names = dict.fromkeys(name for name in wanted if name in scores)
        texts = [f"{_short(name)} {number(scores[name])}" for name in names]
        room = self._screen.width - used
        if sum(len(text) + 2 for text in texts) <= room:
            return "  ".join(texts)
        room -= len(ELLIPSIS)
        chosen: list[str] = []
        for text in texts:
            room -= len(text) + 2
            if room < 0:
                break
            chosen.append(text)
        return "  ".join(chosen) + ELLIPSIS

    def _is_best(self, record: EvalRecord) -> bool:
        value = record.scores.get(self.monitor or "")
        if value is None or value != value:
            return False
        mode, loss = (
            direction(self.monitor or "") or "min",
            loss_beside(record.scores, self.monitor or ""),
        )
        better = is_better(value, self._best, mode, loss=loss, best_loss=self._best_loss)
        if better:
            self._best, self._best_loss, self._best_at = value, loss, record
        return better

    def _best_line(self) -> str | None:
        # A resumed run's best epoch may lie before what was seen here.
        resumed = self._began is not None and self._first != (0, 0)
        at = self._best_at
        if self._best is None or at is None or at.epoch is None or resumed:
            return None
        where = f"epoch {at.epoch + 1}" if self._by_epochs else f"update {at.update:,}"
        return f"best {_short(self.monitor or '')} {number(self._best)} at {where}"

    def _head(self, epoch: int | None, update: int | None) -> str:
        """The position of an evaluation, or of the training, in the run: the start of its line."""
        if epoch is None:
            return "evaluation"
        update = update or 0
        if self._by_epochs:
            return f"epoch {epoch + 1:>{len(str(self._length))}}/{self._length}"
        if self._unit == "update":
            return f"update {update:>{len(f'{self._length:,}')},}/{self._length:,}"
        return f"update {update:,}"

    def _place(self, record: StepRecord) -> str:
        """The position of the training, to the update."""
        head = self._head(record.epoch, record.update)
        return f"{head}  update {record.update:,}" if self._by_epochs else head

    def _share(self, record: EvalRecord) -> float:
        """How much of the run is done at an evaluation, from 0 to 1."""
        if self._unit == "token":
            done = float(self._tokens)
        elif self._unit == "update" or self._record is None:
            done = float(record.update or 0) if self._unit == "update" else 0.0
        elif self._by_epochs:
            done = (record.epoch or 0) + 1.0
        else:
            done = self._done(self._record)
        return done / self._length

    def _print(self, line: str, style: str | None = None) -> None:
        self._spoke = time.perf_counter()
        self._screen.line(line, style)

    def _refresh(self, now: float) -> None:
        self._refreshed = now
        if self._record is None:
            return
        if self._screen.is_live:
            self._read(self._record, self._show)
        elif now - self._spoke >= _HEARTBEAT:
            self._spoke = now
            self._read(self._record, self._sign_of_life)

    def _log_line(self, record: StepRecord) -> None:
        facts = self._facts(record, time.perf_counter())
        facts.pop("update", None)  # which the place has
        self._print("  ".join([self._place(record), *facts.values()]))

    def _sign_of_life(self, record: StepRecord) -> None:
        facts = self._facts(record, time.perf_counter())
        batch = f"batch {record.batch + 1:,}"
        if self.batches:
            batch += f"/{self.batches:,}"
        self._print("  ".join([self._head(record.epoch, record.update), batch, *facts.values()]))

    def _facts(self, record: StepRecord, now: float) -> dict[str, str]:
        """The parts of the live line, the most wanted first. This is where the tensors are read."""
        facts = {"loss": f"loss {number(float(record.loss))}"}
        left = self._left(now)
        facts["left"] = f"{clock(left)} left" if left is not None else ""
        rate = self._speed.rate(now)
        facts["speed"] = f"{rate:,.0f} samples/s" if rate is not None else ""
        if record.grad_norm is not None:
            facts["norm"] = f"norm {number(float(record.grad_norm))}"
        facts["lr"] = f"lr {_rates(record)}"
        for name, part in record.parts.items():
            facts[f"part {name}"] = f"{name} {number(float(part))}"
        if self._by_epochs:
            facts["update"] = f"update {record.update:,}"
        return {name: text for name, text in facts.items() if text}

    def _show(self, record: StepRecord) -> None:
        began = time.perf_counter()
        self._screen.show(self._status(record, began))
        self._pause = max(_REFRESH, (time.perf_counter() - began) / _COST)

    def _status(self, record: StepRecord, now: float) -> Status:
        return Status(
            self._head(record.epoch, record.update),
            self._done(record) / self._length,
            list(self._facts(record, now).values()),
            "" if self._unsaid is None else self._scores,
        )


def _rates(record: StepRecord) -> str:
    """The learning rate; of groups that differ, each with its name."""
    if all(lr == record.lr for lr in record.lrs.values()):
        return f"{record.lr:.3g}"
    return ", ".join(f"{name} {lr:.3g}" for name, lr in record.lrs.items())


def _short(name: str) -> str:
    """A score's name in few words: a line has several."""
    return score_name(name).replace("validation ", "val ").replace("training ", "train ")
