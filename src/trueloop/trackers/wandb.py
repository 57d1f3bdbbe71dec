"""Curves for Weights & Biases, online or offline."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trueloop.trackers.tracker import Point, ServiceTracker


class WandB(ServiceTracker):
    """A run of Weights & Biases; its step is the number of updates.

    A resumed run continues the same run of W&B, whose id is in the folder. With
    `WANDB_MODE=offline` nothing is sent; `wandb sync` does that later.

    Args:
        folder: a new folder, for W&B's files; of a resumed run, the one that it began with.
        project: its project; None takes `WANDB_PROJECT`, or else "trueloop".
        name: its name; None takes the folder's.
        config: options to show beside the curves.
        every_updates: k stores updates 1, k + 1, 2k + 1, …
        by_line: store the lines of `fit(log_every=…)` in place of updates.
        **options: further arguments of `wandb.init`.

    Raises:
        MissingDependencyError: wandb is not installed.
        ConfigError: an argument is not what it should be.
    """

    package = "wandb"
    extra = "wandb"
    _run: Any = None

    def __init__(
        self,
        folder: Path | str,
        *,
        project: str | None = None,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        every_updates: int = 1,
        by_line: bool = False,
        **options: Any,
    ) -> None:
        super().__init__(
            folder, name=name, config=config, every_updates=every_updates, by_line=by_line
        )
        self._project = project
        self._options = options

    def _open(self, updates: int) -> None:
        import wandb

        self._state.setdefault("id", secrets.token_hex(4))
        settings = wandb.Settings(console="off")  # the progress line stays ours
        self._run = wandb.init(
            **{
                "project": self._project or os.environ.get("WANDB_PROJECT", "trueloop"),
                "name": self.name,
                "config": self.config,
                "dir": str(self.folder),
                "id": self._state["id"],
                "resume": "allow" if updates else None,
                "settings": settings,
                **self._options,
            }
        )

    def _write(self, points: Sequence[Point]) -> None:
        for point in points:
            # Steps only grow there; those of a resumed run begin after its last.
            step = max(point.update, self._run.step)
            self._run.log({"update": point.update, **point.axes, **point.values}, step=step)

    def _end(self, status: str) -> None:
        self._run.finish(exit_code=int(status == "failed"))

    def _remedy(self) -> str:
        return "log in with wandb login, or set WANDB_MODE=offline"
