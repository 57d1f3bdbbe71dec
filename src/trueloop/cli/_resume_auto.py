"""`trueloop train --resume auto` where there is a run already: the same command, again and again,
brings it to its end."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

from trueloop import ranks
from trueloop.checkpoint import has_checkpoint
from trueloop.cli import OK
from trueloop.cli._doctor import keep_findings, watched_session
from trueloop.cli._going_on import finish_up, go_on, is_complete
from trueloop.cli._session import settings_of
from trueloop.cli._training import shown, train_run
from trueloop.cli._values import OVER
from trueloop.cli.options import Settings
from trueloop.errors import ConfigError
from trueloop.run import Run

# As with `trueloop resume`: they say where and how long, not what is trained.
_MAY_CHANGE = (
    "device", "parallel", "log_ranks", "max_minutes", "doctor", "grace_seconds", "hang_minutes",
    "hang_exit",
)  # fmt: skip


def resume_auto(path: Path, given: Settings) -> int:
    """Bring the run at `path` to its end, with the options that it was started with.

    One that was killed before its first checkpoint starts again. Raises `ConfigError` where a
    `given` option differs from the run's.
    """
    run = Run(path)
    check_agreement(given, run)
    complete = ranks.on_main(lambda: is_complete(run), "the state of the run")
    # One that is over is only read; whoever holds it may bring it to its end until it is ours.
    with nullcontext() if complete else run.claimed():
        if ranks.on_main(lambda: _is_over(run), "the state of the run"):
            return OK
        return _bring_on(run, given)


def _is_over(run: Run) -> bool:
    """Whether the run has nothing left to train; what it still lacks is written then."""
    if run.status not in OVER:
        return False
    if is_complete(run) or not finish_up(run):
        print(f"{shown(run.path)} has {run.status}: there is nothing left to do")
    return True


def _bring_on(run: Run, given: Settings) -> int:
    settings = _with_changes(settings_of(run), given)
    if ranks.on_main(lambda: has_checkpoint(run.checkpoints), "the state of the run"):
        return go_on(run, settings)
    print(f"{shown(run.path)} ended before its first checkpoint: it starts again")
    with watched_session(settings) as session:
        run.begin_again(session.environment())
        run.write_data(session.splits.facts)
        run.write_task(session.task.state())
        keep_findings(session, run)
        return train_run(session, run)


def _with_changes(settings: Settings, given: Settings) -> Settings:
    """The run's own settings with the options that may change."""
    changes = {name: getattr(given.run, name) for name in _MAY_CHANGE if name in given.stated}
    return replace(settings, run=replace(settings.run, quiet=given.run.quiet, **changes))


def check_agreement(given: Settings, run: Run) -> None:
    """Raise `ConfigError` naming the first option whose stated value is not the run's."""
    there_task = run.option("task")
    if there_task is not None and given.task != there_task:
        raise ConfigError(
            f"{run.path} is a run of the task {there_task}, not of {given.task}: choose a "
            "different --run"
        )
    there, here = settings_of(run).config(), given.config()
    for name, value in there.items():
        if name in given.stated and name not in _MAY_CHANGE and here[name] != value:
            option = "--" + name.replace("_", "-")
            raise ConfigError(
                f"{option} is {here[name]!r}, and the run in {run.path} was started with "
                f"{value!r}: leave {option} out to resume it, or choose a different --run"
            )
