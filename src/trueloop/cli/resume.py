"""`trueloop resume RUN`: go on from the last checkpoint, as if the run had never stopped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from trueloop.checkpoint import has_checkpoint
from trueloop.errors import RunError

if TYPE_CHECKING:
    from trueloop.cli.options import Settings
    from trueloop.run import Run

OVER = ("finished", "stopped early")
"""The status of a run that has nothing left to do."""


def main(argv: Sequence[str]) -> int:
    """Resume; the exit status."""
    from trueloop.cli.parser import Parser

    parser = Parser(
        "trueloop resume",
        description="Go on with a run that was interrupted, ran out of time or was killed.",
        epilog="example:\n  trueloop resume runs/spiral-20250131-120000",
    )
    parser.add_argument("run", metavar="RUN", help="directory of the run")
    parser.add_argument("--device", default=None, metavar="NAME", help="another device than before")
    parser.add_argument("--max-minutes", type=float, metavar="X", help="another limit than before")
    parser.add_argument("--quiet", action="store_true", help="show no progress, only the result")
    given = parser.parse(argv)

    from trueloop.cli._session import settings_of
    from trueloop.run import Run

    run = Run(given.run)
    refuse_if_over(run)
    settings = settings_of(
        run, device=given.device, max_minutes=given.max_minutes, quiet=given.quiet or None
    )
    refuse_without_checkpoint(run)
    return go_on(run, settings)


def go_on(run: Run, settings: Settings) -> int:
    """Train on from the run's last checkpoint; the exit status."""
    from trueloop.checkpoint import load_checkpoint
    from trueloop.cli._outcome import carry_out
    from trueloop.cli._session import open_session

    state = load_checkpoint(run.checkpoints, which="last")
    return carry_out(open_session(settings), run, resume_from=state)


def refuse_if_over(run: Run) -> None:
    """Raise `RunError` for a run that has nothing left to do."""
    if run.status in OVER:
        raise RunError(
            f"{run.path} has {run.status}: there is nothing to go on with; for a longer run write "
            f"trueloop train {run.option('task')} --config {run.path / 'config.json'} --epochs N"
        )


def refuse_without_checkpoint(run: Run) -> None:
    """Raise `RunError` for a run that was killed before it had saved anything."""
    if not has_checkpoint(run.checkpoints):
        raise RunError(
            f"{run.path} ended before it saved a checkpoint: start again with trueloop train "
            f"{run.option('task')} --config {run.path / 'config.json'}"
        )
