"""A run gone on with from its last checkpoint, and one that only lacks its last files."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trueloop import ranks
from trueloop.checkpoint import LOCK
from trueloop.cli._values import OVER
from trueloop.errors import RunError, ScheduleError

if TYPE_CHECKING:
    from trueloop.cli._session import TrainingSession
    from trueloop.cli.options import Settings
    from trueloop.run import Run

DATA, ENVIRONMENT, REPORT = "data.json", "environment.json", "report.html"


def go_on(run: Run, settings: Settings, *, prolong: str | None = None) -> int:
    """Train on from the run's last checkpoint; the exit status. `prolong` is the unit in which the
    run is made longer."""
    from trueloop.checkpoint import load_checkpoint
    from trueloop.cli._doctor import keep_findings, watched_session
    from trueloop.cli._training import train_run
    from trueloop.tasks.base import refuse_changed_data

    ranks.on_main(lambda: refuse_damaged(run), "the state of the run")
    state = load_checkpoint(run.checkpoints, which="last")
    settings = replace(settings, resumed=run.task_state or None)
    with watched_session(settings) as session:
        kept = run.task_state.get("digest")
        refuse_changed_data(session.task, kept, "start a new run with a different --run")
        if prolong is not None:
            refuse_another_curve(session, state, prolong)
        facts = session.environment()
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
    those of the machine, the code and the data."""
    from trueloop.run.lineage import note_resume

    run.remove_litter()
    missing = [name for name in (DATA, ENVIRONMENT) if not (run.path / name).exists()]
    if not run.data:
        run.write_data(session.splits.facts)
    if not run.environment:
        run.write_environment(facts)
    note_resume(run, facts, state["step"]["counters"][2])
    if not run.task_state:
        run.write_task(session.task.state())
    warn_of_lost_lines(run, state, missing)


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


def refuse_damaged(run: Run) -> None:
    """Raise `RunError` for a file that would be missed in the report, at the end of the run."""
    for name in ("data", "task_state", "environment", "findings"):
        try:
            getattr(run, name)
        except RunError as error:
            cause = str(error).rpartition(": ")[0]
            raise RunError(f"{cause}: delete it; a resume then writes it again") from None
