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
    with run.claimed():
        refuse_without_checkpoint(run)
        return go_on(run, settings)


def go_on(run: Run, settings: Settings) -> int:
    """Train on from the run's last checkpoint; the exit status."""
    from trueloop.checkpoint import load_checkpoint
    from trueloop.cli._doctor import keep_findings, watched_session
    from trueloop.cli._outcome import carry_out
    from trueloop.run import environment
    from trueloop.tasks.base import refuse_changed_data

    refuse_damaged(run)
    state = load_checkpoint(run.checkpoints, which="last")
    with watched_session(settings) as session:
        kept = run.task_state.get("digest")
        refuse_changed_data(session.task, kept, "train anew with a different --run")
        if not run.data:
            run.write_data(session.splits.facts)
        if not run.environment:
            run.write_environment(environment(session.device))
        if not run.task_state:
            run.write_task(session.task.state())
        keep_findings(session, run)
        return carry_out(session, run, resume_from=state)


def refuse_damaged(run: Run) -> None:
    """Raise `RunError` for a file that would be missed in the report, at the end of the run."""
    for name in ("data", "task_state", "environment", "findings"):
        try:
            getattr(run, name)
        except RunError as error:
            cause = str(error).rpartition(": ")[0]
            raise RunError(f"{cause}: delete it; a resume then writes it anew") from None


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
