"""Curves for TensorBoard: event files in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from trueloop.trackers.tracker import Point, Tracker


class TensorBoard(Tracker):
    """Curves in the event files of TensorBoard; the step of each point is its update.

    Show them with `tensorboard --logdir FOLDER`, or a folder above for several runs.

    Args:
        folder: a new folder; of a resumed run, the one with its curves.
        every_updates: k stores updates 1, k + 1, 2k + 1, …
        by_line: store the lines of `fit(log_every=…)` in place of updates.

    Raises:
        MissingDependencyError: tensorboard is not installed.
        ConfigError: an argument is not what it should be.
    """

    package = "tensorboard"
    extra = "tensorboard"
    _writer: Any = None

    def _open(self, updates: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        # TensorBoard drops the points from there on that a run stored before it was killed.
        purge = updates + 1 if updates else None
        self._writer = SummaryWriter(str(self.folder), purge_step=purge)
        self._state["update"] = min(updates, self._state.get("update", 0))
        self._state["evaluation"] = min(updates, self._state.get("evaluation", -1))

    def _write(self, points: Sequence[Point]) -> None:
        for point in points:
            group = "evaluations" if point.is_eval else "updates"
            named = {f"{group}/{name}": value for name, value in point.values.items()}
            if not point.is_eval:
                named |= {f"axes/{name}": value for name, value in point.axes.items()}
            for name, value in named.items():
                self._writer.add_scalar(name, value, point.update, walltime=point.at)
        self._writer.flush()

    def _end(self, status: str) -> None:
        self._writer.close()
