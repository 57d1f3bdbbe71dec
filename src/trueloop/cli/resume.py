"""`trueloop resume RUN`: resume from the last checkpoint, as if the run had never stopped."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueloop import ranks
from trueloop.checkpoint import LOCK, has_checkpoint
from trueloop.cli import OK
from trueloop.errors import ConfigError, RunError, ScheduleError
from trueloop.lengths import LENGTHS

if TYPE_CHECKING:
    from trueloop.cli._session import TrainingSession
    from trueloop.cli.options import Settings
    from trueloop.cli.parser import Parser
    from trueloop.run import Run

DATA, ENVIRONMENT, REPORT = "data.json", "environment.json", "report.html"
_OF_ANY = ("--help", "--help-all", "--print_shtab")
OVER = ("finished", "stopped early")
"""The status of a run that has nothing left to do."""


def main(argv: Sequence[str]) -> int:
    """Resume; the exit status."""
    given = parse(_parser(), argv)

    from trueloop.cli._ranks import is_restarted
    from trueloop.cli._session import settings_of
    from trueloop.run import Run

    run = Run(given.run)
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


def _parser() -> Parser:
    from trueloop.cli.parser import DEVICES, Parser

    parser = Parser(
        "trueloop resume",
        usage="trueloop resume RUN [options]",
        description="Go on with a run that was interrupted, ran out of time or was killed. "
        "What is not given here stays as the run began.",
        epilog="example:\n  trueloop resume runs/spiral-20250131-120000",
    )
    parser.add_option("run", metavar="RUN", required=True, help="directory of the run")
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


def go_on(run: Run, settings: Settings, *, prolong: str | None = None) -> int:
    """Train on from the run's last checkpoint; the exit status. `prolong` is the unit in which the
    run is made longer."""
    from trueloop.checkpoint import load_checkpoint
    from trueloop.cli._doctor import keep_findings, watched_session
    from trueloop.cli._training import train_run
    from trueloop.run import environment
    from trueloop.tasks.base import refuse_changed_data

    ranks.on_main(lambda: refuse_damaged(run), "the state of the run")
    state = load_checkpoint(run.checkpoints, which="last")
    settings = replace(settings, resumed=run.task_state or None)
    with watched_session(settings) as session:
        kept = run.task_state.get("digest")
        refuse_changed_data(session.task, kept, "start a new run with a different --run")
        if prolong is not None:
            refuse_another_curve(session, state, prolong)
        facts = environment(session.device, session.parallel)
        ranks.on_main(lambda: repair(run, session, state, facts), "the repair of the run directory")
        if prolong is not None:
            run.forget_results()
            run.write_config({**run.config, prolong: getattr(settings.recipe, prolong)})
        keep_findings(session, run)
        return train_run(session, run, resume_from=state)


def repair(
    run: Run, session: TrainingSession, state: dict[str, Any], facts: dict[str, Any]
) -> None:
    """Remove half-written files of a killed process, and write missing ones again; `facts` are
    those of the machine."""
    run.remove_litter()
    missing = [name for name in (DATA, ENVIRONMENT) if not (run.path / name).exists()]
    if not run.data:
        run.write_data(session.splits.facts)
    if not run.environment:
        run.write_environment(facts)
    note_ranks(run, facts, state["step"]["counters"][2])
    if not run.task_state:
        run.write_task(session.task.state())
    warn_of_lost_lines(run, state, missing)


def note_ranks(run: Run, facts: dict[str, Any], update: int) -> None:
    """Add to the run's environment that it was resumed, after `update` updates, with a different
    number of ranks or a different strategy."""
    environment = run.environment
    parts = [environment, *environment.get("resumed", [])]
    if all(parts[-1].get(name) == facts.get(name) for name in ("ranks", "parallel")):
        return
    names = ("started", "ranks", "hosts", "parallel", "device")
    here = {"update": update, **{name: facts[name] for name in names if name in facts}}
    run.write_environment({**environment, "resumed": [*parts[1:], here]})


def is_complete(run: Run) -> bool:
    """Whether the run is over, with its report, and nothing that a killed process left."""
    left = run.litter() or (run.path / LOCK).exists()
    return run.status in OVER and has_report(run) and not left


def has_report(run: Run) -> bool:
    from trueloop.run.html_page import SCRIPT

    return all((run.path / name).is_file() for name in (REPORT, SCRIPT))


def finish_up(run: Run) -> bool:
    """Remove the temporary files of ours that a kill has left, and write the report of a run that
    was killed before it had one; whether it was. Hold the directory before."""
    from trueloop.cli._training import shown
    from trueloop.run import write_report

    run.remove_litter()
    if has_report(run):
        return False
    report = write_report(run)
    print(f"{shown(run.path)} has {run.status}; its missing files were written")
    print(f"report  {shown(report)}")
    return True


def warn_of_lost_lines(run: Run, state: dict[str, Any], missing: Sequence[str]) -> None:
    """One warning, and notes in the log, which the report shows: of lines of the log up to the
    checkpoint, and of files that were `missing` and are written again."""
    from trueloop.records import EvalRecord
    from trueloop.run.log import fill_gaps

    notes = [
        f"{name} was missing when the run was resumed: it was written again, as of that moment."
        for name in missing
    ]
    gaps = fill_gaps(
        run.path / "metrics.jsonl",
        update=state["step"]["counters"][2],
        evals=[EvalRecord(*fields) for fields in state.get("records", [])],
        seconds=state.get("seconds", 0.0),
        notes=notes,
        pending=line["counts"][0] if (line := state.get("line")) is not None else 0,
    )
    lost = [f"{gap} of metrics.jsonl" for gap in gaps[:3]] + list(missing)
    if lost:
        warnings.warn(
            f"{run.path} has lost {', '.join(lost)}: it continues, and its log and report mention "
            "it",
            RuntimeWarning,
            stacklevel=2,
        )


def refuse_another_curve(session: TrainingSession, state: dict[str, Any], unit: str) -> None:
    """Raise `ScheduleError` where a longer run, in this unit, would have had different learning
    rates so far."""
    from trueloop.step.loading import same_curve
    from trueloop.step.warmup_stable_decay import is_state, parted

    saved, planned = state["step"]["schedule"], session.step.state_dict()["schedule"]
    several = isinstance(saved, list) and isinstance(planned, list) and len(saved) == len(planned)
    pairs = zip(saved, planned, strict=True) if several else [(saved, planned)]
    for one, two in pairs:
        if is_state(one) and is_state(two):
            if why := parted(one, two):
                raise ScheduleError(why)
        elif not same_curve(one, two):
            recipe = session.settings.recipe
            name, option = recipe.schedule, f"--{unit} {getattr(recipe, unit)}"
            raise ScheduleError(
                f"the schedule {name} is as long as the run, so with {option} the learning rates "
                "so far would have been different: start a new run with trueloop train "
                f"{session.settings.task} {option}"
            )


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


def refuse_damaged(run: Run) -> None:
    """Raise `RunError` for a file that would be missed in the report, at the end of the run."""
    for name in ("data", "task_state", "environment", "findings"):
        try:
            getattr(run, name)
        except RunError as error:
            cause = str(error).rpartition(": ")[0]
            raise RunError(f"{cause}: delete it; a resume then writes it again") from None


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
