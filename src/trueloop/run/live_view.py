"""The curves of a run in the terminal, made only from its directory."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

import numpy as np

from trueloop.checkpoint import LOCK, has_checkpoint
from trueloop.checkpoint.lock import is_held
from trueloop.formatting import clock, duration, number, score_name
from trueloop.run.charts import Curves, smooth
from trueloop.run.directory import Run
from trueloop.run.log import LOG, best_eval
from trueloop.run.log_reader import Floats, LogReader
from trueloop.run.report import curves_of, headline, monitored, samples_per_second
from trueloop.run.terminal_chart import Curve, drawn

if TYPE_CHECKING:
    from rich.console import Group
    from rich.text import Text

_WIDE = 100
"""Characters from which on two charts are beside each other."""
_LEAST = 6
"""Lines of a chart, at the least."""
_KILLED = "the process has ended without finishing"
_RECENT = 30.0
"""Seconds of the run over which its pace is measured."""


class LiveView:
    """A run as far as its log goes. `read` takes in what was added since, and only that.

    Args:
        run: the run, in this or a different process.
    """

    def __init__(self, run: Run) -> None:
        self.run = run
        self.log = LogReader(run.path / LOG)
        self.config = run.config

    def read(self) -> bool:
        """Read what was added; whether there was anything."""
        return self.log.read()

    @property
    def end(self) -> str | None:
        """How the run ended, as far as its directory shows it; None while it is running."""
        # The results are looked for again after the lock, which is released after they are written.
        return self._result() or (self._result() or _KILLED if self._is_left() else None)

    def _is_left(self) -> bool:
        """Whether nobody trains the run: a loop of the user's own does not lock its directory."""
        locks = self._is_of_a_task or (self.run.path / LOCK).exists()
        return locks and is_held(self.run.path) is False

    @property
    def _is_of_a_task(self) -> bool:
        """Whether it is a run of `trueloop train`, not of `fit`."""
        return isinstance(self.config.get("task"), str)

    def _result(self) -> str | None:
        results, log = self.run.path / "results.json", self.log.path
        try:
            # A resumed run still has the results of the part before.
            over = results.stat().st_mtime_ns >= (log.stat().st_mtime_ns if log.exists() else 0)
        except FileNotFoundError:
            return None
        return self.run.status if over else None

    def frame(self, width: int, height: int) -> Group:
        """The run on a terminal of so many characters and lines."""
        from rich.console import Group
        from rich.table import Table

        curves = curves_of(self.run, self.log, by_updates=True)
        head = self.summary(curves)
        charts = self._curves(curves)
        beside = 2 if width >= _WIDE else 1
        room = height - sum(-(-max(1, line.cell_len) // width) for line in head) - 1
        rows = min(-(-len(charts) // beside), max(1, room // _LEAST))
        each = max(_LEAST, min(16, room // rows)) if rows else 0
        table = Table.grid(padding=(0, 2, 0, 0))
        for row in range(rows):
            cells = []
            for title, lines in charts[row * beside : (row + 1) * beside]:
                falls = title in ("loss", "gradient norm")
                text = drawn(title, lines, width // beside - 2, each, "update", log=falls)
                cells.append(Group(*text))
            table.add_row(*cells)
        return Group(*head, table) if charts else Group(*head)

    def summary(self, curves: Curves | None = None) -> list[Text]:
        """The run's state in two or three lines."""
        from rich.text import Text

        curves = curves or curves_of(self.run, self.log, by_updates=True)
        first = Text(self.run.name, style="bold")
        end = self.end
        state = end or ("waiting for the first update" if not self.log.seconds else "running")
        first.append(f"  {state}", style="green" if state == end else "yellow")
        if end == _KILLED:
            first.append(f"; {self._remedy()}")
        last = curves.updates.last()
        facts = [self._done(last), *self._values(last), self._speed(curves), self._left(curves)]
        second = "  ".join(fact for fact in facts if fact)
        lines = [first, Text(second)]
        if scores := self._scores(curves):
            lines.append(Text(scores))
        return lines

    def _remedy(self) -> str:
        if not has_checkpoint(self.run.checkpoints):
            return "it has no checkpoint: start it again"
        if self._is_of_a_task:
            return f"resume with: trueloop resume {shlex.quote(str(self.run.path))}"
        return f"resume with: fit(..., resume_from=load_checkpoint({str(self.run.checkpoints)!r}))"

    def _done(self, last: dict[str, float]) -> str:
        if not last:
            return ""
        update, epoch = int(last["update"]), int(last["epoch"])
        of = {name: self.config.get(name) for name in ("updates", "epochs")}
        ends = {name: f"/{n:,}" if isinstance(n, int) else "" for name, n in of.items()}
        return f"epoch {epoch}{ends['epochs']}  update {update:,}{ends['updates']}"

    def _values(self, last: dict[str, float]) -> list[str]:
        known = {"loss": "loss", "grad_norm": "norm"}
        found = [f"{text} {number(last[name])}" for name, text in known.items() if name in last]
        return [*found, f"lr {last['lr']:.3g}"] if "lr" in last else found

    def _speed(self, curves: Curves) -> str:
        speed = samples_per_second(curves)
        return "" if speed is None else f"{speed:,.0f} samples/s"

    def _left(self, curves: Curves) -> str:
        """The time so far, and what is left at the pace of the last half minute."""
        spent = duration(self.log.seconds) if self.log.seconds else ""
        left = None if self.end else self._seconds_left(curves)
        return spent if left is None else f"{spent}  {clock(left)} left"

    def _seconds_left(self, curves: Curves) -> float | None:
        done, length = self._progress(curves)
        if length is None or len(done) < 2:
            return None
        at = curves.updates.column("time")
        start = min(int(np.searchsorted(at, at[-1] - _RECENT)), len(at) - 2)
        seconds, share = at[-1] - at[start], done[-1] - done[start]
        return float((length - done[-1]) * seconds / share) if share > 0 and seconds > 0 else None

    def _progress(self, curves: Curves) -> tuple[Floats, float | None]:
        """How much is done after each line, and the whole, in the unit of the run's length."""
        updates = curves.updates
        if isinstance(length := self.config.get("updates"), int):
            return updates.column("update"), length
        if isinstance(length := self.config.get("tokens"), int):
            return np.nancumsum(updates.column("tokens")), length
        if isinstance(length := self.config.get("epochs"), int) and self.log.evals:
            batches = 1 + np.max(updates.column("batch"), initial=0.0)
            return updates.column("epoch") - 1 + (updates.column("batch") + 1) / batches, length
        return np.empty(0), None

    def _scores(self, curves: Curves) -> str:
        """The last evaluation, and the best one."""
        if not curves.evals:
            return ""
        last, names = curves.evals[-1], curves.scores()
        shown = [f"{score_name(name)} {number(last[name])}" for name in names if name in last][:4]
        monitor = monitored(self.run, {}, curves)
        best = best_eval(curves.evals, monitor)
        if best is not None and monitor is not None:
            at = f"at update {best['update'] or 0:,}"
            shown.append(f"best {score_name(monitor)} {number(best[monitor])} {at}")
        return "  ".join(shown)

    def _curves(self, curves: Curves) -> list[tuple[str, list[Curve]]]:
        """The charts: loss, the monitored score, learning rate, gradient norm."""
        charts: list[tuple[str, list[Curve]]] = []
        at, losses = curves.at(curves.applied), curves.applied.column("loss")
        lines = [Curve("updates", at, smooth(losses, max(1, len(losses) // 200)), "yellow")]
        for name, style in (("train_loss", "bright_yellow"), ("val_loss", "bright_blue")):
            lines += self._of_evals(curves, name, style)
        charts.append(("loss", [line for line in lines if len(line.x)]))
        last = curves.evals[-1] if curves.evals else {}
        best = headline(last, monitored(self.run, {}, curves))
        if best is not None and not best.endswith("loss"):
            charts.append((score_name(best), self._of_evals(curves, best, "bright_blue")))
        for name, title, style in (
            ("lr", "learning rate", "cyan"),
            ("grad_norm", "gradient norm", "magenta"),
        ):
            values = curves.applied.column(name)
            if np.isfinite(values).any():
                charts.append((title, [Curve(title, at, values, style)]))
        return [(title, lines) for title, lines in charts if lines]

    def _of_evals(self, curves: Curves, name: str, style: str) -> list[Curve]:
        values = [line.get(name, math.nan) for line in curves.evals]
        y = np.array([math.nan if v is None else v for v in values], dtype=np.float64)
        return [Curve(score_name(name), curves.at_eval, y, style)] if np.isfinite(y).any() else []
