"""The output of a run while it trains: one live line at a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from trueloop.records import EvalRecord, StepRecord, direction, is_better, loss_beside
from trueloop.run.formatting import clock, number, score_name

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live
    from rich.table import Table

_REFRESH = 0.25
"""Seconds between two looks at the tensors, at the least."""
_HEARTBEAT = 60.0
"""Without a terminal: seconds after which a long epoch gives a sign of life."""
_PLAIN_WIDTH = 100
"""Characters of a line without a terminal, at the most."""


class ProgressDisplay:
    """A sink for `StepRecord` and `EvalRecord` that shows how the run is going.

    At a terminal a live line shows the epoch or update, loss, gradient norm, learning rate, samples
    per second and the time left; without one, plain lines are printed. The scores of an evaluation
    become a permanent line at a pace that one can read, however short the epochs are; with
    `fit(log_every=…)` so does each line of the log. Tensors are read at most four times a second
    and for these lines, so that training never waits for its own display. Use it as a context
    manager, or call `close()`: a terminal is left as it was found.

    Args:
        epochs: the length of the run; give one of the three.
        updates: the length of the run in updates.
        tokens: the length of the run in tokens.
        by_epochs: name evaluations by their epoch, not by their update.
        batches: micro-batches in an epoch; None: learned from the first epoch.
        monitor: the score that decides which evaluation is the best.
        console: of rich; None: standard output.
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
        console: Console | None = None,
    ) -> None:
        from rich.console import Console as RichConsole

        lengths = {"epoch": epochs, "update": updates, "token": tokens}
        self._unit, self._length = next((u, n) for u, n in lengths.items() if n is not None)
        self._by_epochs = by_epochs and epochs is not None
        self._tokens = 0
        self.batches = batches
        self.monitor = monitor
        self.console = console or RichConsole(highlight=False)
        self._live: Live | None = None
        self._record: StepRecord | None = None
        self._best: float | None = None
        self._best_loss = math.nan
        self._best_at: EvalRecord | None = None
        self._unsaid: str | None = None
        self._scores = ""
        self._pace = _LineThrottle()
        self._speed = _Throughput(time.perf_counter())
        self._skips = _SkippedUpdates()
        self._first = (0, 0)
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
            self._speed = _Throughput(now)
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
        if now - self._refreshed >= _REFRESH:
            self._refresh(now)

    def close(self) -> None:
        """Say what is still to be said and give the terminal back. Closing twice is fine."""
        if self._live is not None:
            self._live.stop()
            self._live = None
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
        now = time.perf_counter()
        facts = self._facts(record, now)
        self._print("  ".join([self._place(record), *facts.values()]))
        self._refreshed = now

    def __enter__(self) -> ProgressDisplay:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

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
        if now - self._refreshed >= _REFRESH:
            self._refresh(now)

    def _choice(self, scores: dict[str, float], used: int) -> str:
        """As many scores as fit in one line: the losses, the monitored one, then the others."""
        wanted = ["train_loss", "val_loss", self.monitor or "", *scores]
        room = (self.console.width if self.console.is_terminal else _PLAIN_WIDTH) - used
        chosen: list[str] = []
        for name in dict.fromkeys(name for name in wanted if name in scores):
            text = f"{_short(name)} {number(scores[name])}"
            room -= len(text) + 2
            if room >= 0:
                chosen.append(text)
        return "  ".join(chosen)

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
        self.console.print(line, style=style, markup=False, highlight=False, soft_wrap=True)

    def _refresh(self, now: float) -> None:
        self._refreshed = now
        if self._record is None:
            return
        if self.console.is_terminal:
            self._show(self._record, now)
        elif now - self._spoke >= _HEARTBEAT:
            facts = self._facts(self._record, now)
            batch = f"batch {self._record.batch + 1:,}"
            if self.batches:
                batch += f"/{self.batches:,}"
            head = self._head(self._record.epoch, self._record.update)
            self._print("  ".join([head, batch, *facts.values()]))

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

    def _show(self, record: StepRecord, now: float) -> None:
        if self._live is None:
            from rich.live import Live

            self._live = Live(console=self.console, auto_refresh=False, transient=True)
            self._live.start()
        self._live.update(self._live_lines(record, now), refresh=True)

    def _live_lines(self, record: StepRecord, now: float) -> Table:
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        head = self._head(record.epoch, record.update)
        room = self.console.width - len(head) - 12
        shown = []
        for name, text in self._facts(record, now).items():
            room -= len(text) + 2
            if room < 0:
                break
            shown.append(Text(text, style="bold" if name == "loss" else "", no_wrap=True))
        done = self._done(record)
        bar = ProgressBar(total=self._length, completed=done, width=10 + min(room, 20) * (room > 0))
        line = Table.grid(padding=(0, 2, 0, 0))
        line.add_row(Text(head, style="bold", no_wrap=True), bar, *shown)
        lines = Table.grid()
        lines.add_row(line)
        if self._unsaid is not None:
            scores = Text(f"{'':{len(head)}}  {self._scores}", style="dim", no_wrap=True)
            scores.truncate(self.console.width, overflow="ellipsis")
            lines.add_row(scores)
        return lines


class _LineThrottle:
    """Which evaluations get a permanent line: about ten by their share of the run, a best one after
    5 s of silence, any after 10 s; the first and the last always."""

    def __init__(self) -> None:
        self._share: float | None = None
        self._at = 0.0

    def due(self, share: float, best: bool, now: float) -> bool:
        silent = now - self._at
        due = (
            self._share is None
            or share >= 1
            or int(10 * share + 1e-9) > int(10 * self._share + 1e-9)
            or (best and silent >= 5)
            or silent >= 10
        )
        if due:
            self._share, self._at = share, now
        return due


class _Throughput:
    """Samples per second of training, without the time of evaluations."""

    def __init__(self, now: float) -> None:
        self.samples = 0
        self.idle = 0.0
        self._since = now
        self._rate: float | None = None

    def rate(self, now: float) -> float | None:
        """The rate since the last call, smoothed; None until it can be known."""
        seconds = now - self._since - self.idle
        if seconds > 0 and self.samples:
            fresh = float(self.samples) / seconds
            self._rate = fresh if self._rate is None else 0.7 * self._rate + 0.3 * fresh
        self._since, self.samples, self.idle = now, 0, 0.0
        return self._rate


class _SkippedUpdates:
    """Skipped updates: the first one is printed at once, later ones are counted and printed every 2
    s."""

    def __init__(self) -> None:
        self._count = 0
        self._at: float | None = None
        self._has_outliers = False

    def line_for(self, record: StepRecord, now: float) -> str | None:
        self._count += 1
        is_outlier = record.outlier is not None and bool(record.outlier.outlier)
        self._has_outliers |= is_outlier
        if self._at is not None and now - self._at < 2:
            return None
        self._at = now
        if self._count > 1:
            return self.rest()
        self._count = 0
        # record.update counts the updates that were applied; this one would have been the next.
        why = "norm was an outlier" if is_outlier else "was not finite"
        return f"update {record.update + 1:,} skipped: its gradient {why}"

    def rest(self) -> str | None:
        """A line about those not said yet, if any."""
        count, self._count = self._count, 0
        if not count:
            return None
        what = "1 more update" if count == 1 else f"{count:,} more updates"
        why = "the gradients were not finite" + (", or outliers" * self._has_outliers)
        return f"{what} skipped: {why}"


def _rates(record: StepRecord) -> str:
    """The learning rate; of groups that differ, each with its name."""
    if all(lr == record.lr for lr in record.lrs.values()):
        return f"{record.lr:.3g}"
    return ", ".join(f"{name} {lr:.3g}" for name, lr in record.lrs.items())


def _short(name: str) -> str:
    """A score's name in few words: a line has several."""
    return score_name(name).replace("validation ", "val ").replace("training ", "train ")
