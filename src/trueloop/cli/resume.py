"""`trueloop resume [RUN]`: resume from the last checkpoint, as if the run had never stopped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop import ranks
from trueloop.checkpoint import has_checkpoint
from trueloop.cli import OK
from trueloop.cli._going_on import finish_up, go_on, is_complete
from trueloop.cli._latest import UNSET, run_or_latest
from trueloop.cli._values import OVER
from trueloop.errors import ConfigError, RunError
from trueloop.lengths import LENGTHS

if TYPE_CHECKING:
    from trueloop.cli.parser import Parser
    from trueloop.run import Run

_OF_ANY = ("--help", "--help-all", "--print_shtab")


def main(argv: Sequence[str]) -> int:
    """Resume; the exit status."""
    parser = _parser()
    given = parse(parser, argv)
    path = run_or_latest(given.run, parser)

    from trueloop.cli._ranks import is_restarted
    from trueloop.cli._session import settings_of

    if (Path(path) / "folds.json").is_file():
        from trueloop.cli._folds import resume_all

        return resume_all(Path(path), quiet=given.quiet)
    run = _opened(path)
    length = longer(run, {unit: given[unit] for unit in LENGTHS})
    if is_restarted() and length is not None and run.option(length[0]) == length[1]:
        length = None  # the same command, before a rank was lost, has seen to that
    settings = settings_of(
        run,
        device=given.device,
        parallel=given.parallel,
        log_ranks=given.log_ranks or None,
        max_minutes=given.max_minutes,
        grace_seconds=given.grace_seconds,
        hang_minutes=given.hang_minutes,
        hang_exit=given.hang_exit or None,
        quiet=given.quiet or None,
        **({} if length is None else dict([length])),
    )
    if length is None and ranks.on_main(lambda: is_complete(run), "the state of the run"):
        refuse_over(run)
    with run.claimed():
        if ranks.on_main(lambda: _is_over(run, length), "the state of the run"):
            return OK
        return go_on(run, settings, prolong=None if length is None else length[0])


def _opened(path: str) -> Run:
    from trueloop.run import Run

    try:
        return Run(path)
    except RunError as error:
        if Path(path).exists():
            raise
        raise RunError(
            f"{error}; a run that is interrupted before its first update is not kept: start it "
            "again with trueloop train"
        ) from None


def _parser() -> Parser:
    from trueloop.cli.parser import DEVICES, Parser

    parser = Parser(
        "trueloop resume",
        usage="trueloop resume [RUN] [options]",
        description="Go on with a run that was interrupted, ran out of time or was killed. "
        "What is not given here stays as the run began.",
        epilog="example:\n  trueloop resume runs/spiral-20250131-120000",
    )
    parser.add_option("run", nargs="?", metavar="RUN", unset=UNSET, help="directory of the run")
    for unit in LENGTHS:
        what = f"{unit} in all, more than before, for a run whose length is in {unit}"
        parser.add_option(f"--{unit}", type=int, metavar="N", help=what)
    parser.add_option(
        "--device",
        metavar="NAME",
        choices=DEVICES,
        help="train there instead of where the run began",
    )
    parser.add_option(
        "--parallel",
        metavar="NAME",
        choices=("auto", "ddp", "fsdp"),
        help="how many ranks train together, instead of as the run began",
    )
    parser.add_option(
        "--max-minutes", type=float, metavar="X", unit="minutes", help="a new time limit"
    )
    parser.add_option(
        "--grace-seconds", type=float, metavar="X", unit="seconds",
        help="time between a signal (SIGTERM, SIGUSR1) and the kill of the process",
    )  # fmt: skip
    parser.add_option(
        "--hang-minutes", type=float, metavar="X", unit="minutes",
        help="write the stacks of every rank after this time without progress",
    )  # fmt: skip
    parser.add_option("--hang-exit", action="store_true", help="end the run if it hangs")
    parser.add_option(
        "--log-ranks", action="store_true", help="write a log of each rank: log/rank-K.jsonl"
    )
    parser.add_option("--quiet", action="store_true", help="show no progress, only the result")
    return parser


def longer(run: Run, given: Mapping[str, int | None]) -> tuple[str, int] | None:
    """The unit and the number of the longer length that the run is given, if any.

    Raises `ConfigError` for several, or one in a different unit than the run's.
    """
    stated = {unit: number for unit, number in given.items() if number is not None}
    if len(stated) > 1:
        listed = " and ".join(f"--{unit} {number}" for unit, number in stated.items())
        raise ConfigError(f"{listed} each set the length of the run: write one of them")
    for unit, number in stated.items():
        before = {name: run.option(name) for name in LENGTHS if run.option(name) is not None}
        if before and unit not in before:
            ((own, amount),) = list(before.items())[:1]
            raise ConfigError(
                f"--{unit} {number}: the run is as long as its {own}, {amount}: write --{own} N"
            )
        return unit, number
    return None


def _is_over(run: Run, length: tuple[str, int] | None) -> bool:
    """Whether the run only lacked its report, which is now written. Raises `RunError` for one that
    cannot be resumed."""
    if length is not None:
        refuse_no_more(run, *length)
    elif run.status in OVER:
        if not finish_up(run):
            refuse_over(run)
        return True
    refuse_without_checkpoint(run)
    return False


def parse(parser: Parser, argv: Sequence[str]) -> Any:
    """The options that were given; an option of `train` is answered with those that a resume
    takes."""
    try:
        return parser.parse(argv)
    except ConfigError as error:
        if "unknown option" not in str(error):
            raise
        options = ", ".join(name for name in parser.option_names() if name not in _OF_ANY)
        raise ConfigError(
            f"{str(error).partition(':')[0]}: a resume uses the options of the run, and only "
            f"accepts {options}"
        ) from None


def refuse_no_more(run: Run, unit: str, number: int) -> None:
    """Raise unless so many epochs, updates or tokens are more than the run has, and it may have
    more."""
    if run.status == "stopped early":
        raise RunError(
            f"{run.path} has stopped early, which more {unit} do not change: start a new run with "
            "a larger --patience"
        )
    before = run.option(unit)
    if isinstance(before, int) and number <= before:
        raise ConfigError(
            f"--{unit} {number} is not more than the {before} of the run: write a larger number, "
            "or leave it out"
        )


def refuse_over(run: Run) -> None:
    """Raise `RunError` for a run that has nothing left to do."""
    unit = next((name for name in LENGTHS if run.option(name) is not None), "epochs")
    raise RunError(
        f"{run.path} has {run.status}: there is nothing to resume; for a longer run write "
        f"trueloop resume {run.path} --{unit} N, or if the schedule is as long as the run, "
        f"trueloop train {run.option('task')} --config {run.path / 'config.json'} --{unit} N"
    )


def refuse_without_checkpoint(run: Run) -> None:
    """Raise `RunError` for a run that was killed before it had saved anything."""
    if not has_checkpoint(run.checkpoints):
        raise RunError(
            f"{run.path} ended before it saved a checkpoint: start again with trueloop train "
            f"{run.option('task')} --config {run.path / 'config.json'}"
        )
