"""How a run goes and what comes out of it: the training itself, results, report, last words."""

from __future__ import annotations

import shlex
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trueloop import ranks
from trueloop.calibration import calibration_of
from trueloop.checkpoint import (
    Checkpoints,
    WriteError,
    best as best_checkpoint,
    has_checkpoint,
    load_checkpoint,
    model_state,
    place_of,
)
from trueloop.cli import OK, collect_as_usual
from trueloop.cli._intervals import coverage_line, intervals_of
from trueloop.cli._live_report import LiveReport
from trueloop.cli._session import TrainingSession, load_weights, returned
from trueloop.cli._signals import interrupted_by
from trueloop.cli._values import OVER
from trueloop.cli.options import Settings
from trueloop.device import matmul_in
from trueloop.display import ProgressDisplay
from trueloop.doctor.live.entry.script import on_stage
from trueloop.errors import Interrupted, TrueloopError, UserError
from trueloop.evaluation import evaluating
from trueloop.formatting import duration, number, score_name
from trueloop.lengths import parse_interval
from trueloop.loop import History, fit
from trueloop.records import EvalRecord, StepRecord
from trueloop.run import Figures, Run, write_report
from trueloop.run.log import LOG
from trueloop.run.log_reader import has_lines, read_log
from trueloop.run.profile import FOLDER, TRACE, Profile, in_short
from trueloop.run.rank_log import RankLog
from trueloop.run.report import faults
from trueloop.seed import rng_preserved
from trueloop.stopping import EarlyStopping
from trueloop.trackers import open_tracker
from trueloop.trackers.tracker import Tracker

MOST_RESIDUALS = 5000
"""Points of the report's residual plot; more would only be drawn over each other."""

# The score that people ask for first, where a task's metrics have it.
_HEADLINES = ("accuracy", "r2")


def train_run(session: TrainingSession, run: Run, resume_from: dict[str, Any] | None = None) -> int:
    """Train to the end, however it comes, and leave results and report; the exit status.

    Raises what stopped the training (`NonFiniteError`, or a `UserError` of the data) after what was
    reached has been kept; a `KeyboardInterrupt` says how to resume.
    """
    try:
        return _train_run(session, run, resume_from)
    except KeyboardInterrupt as stop:
        # A second signal, or Ctrl-C while the best weights are evaluated and the report written.
        if not has_checkpoint(run.checkpoints):
            raise
        number = getattr(stop, "signal", signal.SIGINT)
        raise Interrupted(number, how_to_go_on(run)) from None


def _train_run(session: TrainingSession, run: Run, resume_from: dict[str, Any] | None) -> int:
    with ExitStack() as stack:
        tracked = [stack.enter_context(each) for each in _trackers(session, run)]
        return _train_tracked(session, run, resume_from, tracked)


def _train_tracked(
    session: TrainingSession,
    run: Run,
    resume_from: dict[str, Any] | None,
    tracked: Sequence[Tracker],
) -> int:
    album = Figures(run.path)
    failure: TrueloopError | None = None
    interruption: int | None = None
    saved = checkpoints_of(session, run)
    try:
        history = train(
            session, run, album, checkpoints=saved, others=tracked, resume_from=resume_from
        )
        status, interruption = history.status, history.signal
        session.tokens = history.tokens
        if session.doctor is not None:
            session.doctor.end(cut=status not in ("finished", "stopped early"))
        unsaved = ranks.from_main(saved.unsaved, "whether all was saved")
        if unsaved is not None:
            status, failure = "failed", WriteError(unsaved)
    except TrueloopError as error:
        if not ranks.all_raise(error):
            raise  # the others are in the midst of an update, and would wait for this one
        status, failure = "failed", error
        if session.doctor is not None:
            session.doctor.end(cut=True)
        if not ranks.is_main():
            raise  # where the other ranks stand is not known: rank 0 concludes without them
        if isinstance(error, UserError) and not _has_moved(session, run, resume_from):
            raise
    ranks.here.move("ending")
    try:
        found = conclude(session, run, album, status, failure)
    except UserError as error:
        # What ended the run comes before what then could not be said of it.
        raise _with_remedy(failure or error, run) from None
    if failure is not None:
        raise _with_remedy(failure, run)
    _end_tracking(session, tracked, status, found.get("test_scores"))
    return OK if interruption is None else interrupted_by(interruption)


def _end_tracking(
    session: TrainingSession,
    tracked: Sequence[Tracker],
    status: str,
    scores: Mapping[str, float] | None,
) -> None:
    """Close the trackers; of a run that is over, they get the scores of its test data too."""
    for tracker in tracked:
        if scores and status in OVER:
            named = {f"test_{name.removeprefix('test_')}": value for name, value in scores.items()}
            epoch, batch, update = place_of(session.step)
            tracker.add_scores(named, epoch=epoch if batch else max(0, epoch - 1), update=update)
        tracker.close(status)


def _has_moved(session: TrainingSession, run: Run, resume_from: dict[str, Any] | None) -> bool:
    """Whether there is anything to conclude: what is refused at once leaves the run as it was."""
    if resume_from is None:
        return has_lines(run.path / LOG)
    epoch, batch, updates, _ = resume_from["step"]["counters"]
    return place_of(session.step) not in ((0, 0, 0), (epoch, batch, updates))


def _with_remedy(failure: TrueloopError, run: Run) -> TrueloopError:
    """`failure`, with the command that resumes if only the disk is the problem."""
    if isinstance(failure, WriteError) and has_checkpoint(run.checkpoints):
        return WriteError(f"{failure}; then {how_to_go_on(run)}")
    return failure


def conclude(
    session: TrainingSession, run: Run, album: Figures, status: str, failure: TrueloopError | None
) -> dict[str, Any]:
    """Leave results and report, and the last words on the terminal; what was found of the best
    weights.

    All ranks score the best weights together, and rank 0 writes. After a failure no other rank
    takes part.
    """
    found: dict[str, Any] = {}
    if failure is not None and ranks.is_distributed():
        if ranks.is_main():
            _write(session, run, status, failure, _marked_best(run))
        return found
    # There are none before the first evaluation, nor when each of them gave a NaN.
    if ranks.on_main(lambda: has_checkpoint(run.checkpoints, "best"), "the best checkpoint"):
        best = load_checkpoint(run.checkpoints, which="best")
        found |= _of_mark(best)
        load_weights(session.model, model_state(best, session.model), run)
        # Data that stopped the training would stop an evaluation too.
        if not isinstance(failure, UserError):
            found |= _of_best_weights(session, album)
    ranks.on_main(lambda: _write(session, run, status, failure, found), "the report")
    return found


def _marked_best(run: Run) -> dict[str, Any]:
    """The facts about the best epoch that need no look at its weights."""
    if not has_checkpoint(run.checkpoints, "best"):
        return {}
    mark = best_checkpoint.marked(run.checkpoints)
    return {} if mark is None else _of_mark(mark)


def _of_mark(best: Mapping[str, Any]) -> dict[str, Any]:
    """The entry of results.json about the best checkpoint, by its mark."""
    return {
        "best_epoch": best["epoch"] + 1,
        "best_update": best.get("update"),
        "scores": best["scores"],
    }


def _write(
    session: TrainingSession,
    run: Run,
    status: str,
    failure: TrueloopError | None,
    found: dict[str, Any],
) -> None:
    """Write results and report, with what was `found` of the best weights, and say where."""
    results = _totals(session, run, status)
    if failure is not None:
        results["error"] = str(failure)
    results |= found
    run.write_results(results)
    report = write_report(run)
    _print(last_words(run, results, report, session.settings))


def checkpoints_of(session: TrainingSession, run: Run) -> Checkpoints:
    """The run's checkpoints, kept as its options say."""
    options, monitor = session.settings.run, session.settings.recipe.monitor
    return Checkpoints(
        run.checkpoints,
        keep_last=options.keep_last,
        keep_best=monitor,
        every=options.save_every,
        on_error=options.on_save_error,
        state=returned(session.task, "resume_state", session.task.resume_state(), dict),
    )


def train(
    session: TrainingSession,
    run: Run,
    album: Figures,
    *,
    checkpoints: Checkpoints | None = None,
    others: Sequence[Callable[[Any], object]] = (),
    resume_from: dict[str, Any] | None = None,
) -> History:
    """`fit` with what is shown and drawn beside it, and with the sinks `others`."""
    recipe, options = session.settings.recipe, session.settings.run
    patience = recipe.patience
    with ExitStack() as stack, matmul_in(options.matmul, session.device):
        sinks = _sinks(session, run, album, stack)
        if (every := parse_interval("--report-every", options.report_every)) is not None:
            sinks.append(LiveReport(run, every))
        sinks += others
        if options.profile is not None and ranks.is_main():
            sinks.append(stack.enter_context(_profile(session, run, options.profile, resume_from)))
        train_it = partial(
            fit,
            session.step,
            session.train,
            session.val,
            epochs=recipe.epochs,
            updates=recipe.updates,
            tokens=recipe.tokens,
            eval_every=recipe.eval_every,
            log_every=options.log_every,
            metrics=session.metrics,
            run=run,
            sinks=sinks,
            early_stop=None
            if patience is None
            else EarlyStopping(recipe.monitor, patience, recipe.min_delta),
            checkpoints=checkpoints or checkpoints_of(session, run),
            max_seconds=None if options.max_minutes is None else 60 * options.max_minutes,
            resume_from=resume_from,
            grace_seconds=options.grace_seconds,
            hang_minutes=options.hang_minutes,
            hang_exit=options.hang_exit,
            progress=False,
        )
        collect_as_usual()
        history: History = on_stage(train_it)
        return history


def _sinks(
    session: TrainingSession, run: Run, album: Figures, stack: ExitStack
) -> list[Callable[[Any], object]]:
    """The progress, the pictures, the doctor and the log of this rank; `stack` closes them."""
    recipe, options = session.settings.recipe, session.settings.run
    sinks: list[Callable[[Any], object]] = []
    if not options.quiet and ranks.is_main():
        progress = ProgressDisplay(
            epochs=recipe.epochs,
            updates=recipe.updates,
            tokens=recipe.tokens,
            by_epochs=session.settings.by_epochs,
            batches=len(session.train) if session.train.has_length else None,
            monitor=recipe.monitor,
        )
        sinks.append(stack.enter_context(progress))
    # Behind the progress, whose samples per second should not count the drawing.
    sinks.append(_after_evaluation(session, album))
    if session.doctor is not None:
        sinks.append(session.doctor)
    if options.log_ranks:
        sinks.append(stack.enter_context(RankLog(run.path, session.device)))
    return sinks


def _trackers(session: TrainingSession, run: Run) -> list[Tracker]:
    """Those of --track."""
    options = session.settings.run
    return [
        open_tracker(
            name,
            run.path / "trackers" / name,
            run=run.name,
            config=run.config,
            by_line=options.log_every is not None,
        )
        for name in options.track or ()
    ]


def _profile(
    session: TrainingSession, run: Run, updates: int, resumed: dict[str, Any] | None
) -> Profile:
    done = 0 if resumed is None else sum(resumed["step"]["counters"][2:])
    return Profile(run.path, session.step, updates, done=done)


def _after_evaluation(
    session: TrainingSession, album: Figures
) -> Callable[[StepRecord | EvalRecord], None]:
    """A sink that lets the task look at its model, without a trace in modes or randomness."""
    unwritten: list[WriteError] = []
    task, settings = session.task, session.settings

    def sink(record: StepRecord | EvalRecord) -> None:
        if not isinstance(record, EvalRecord) or record.epoch is None:
            return
        try:
            with evaluating(session.model), rng_preserved():
                if settings.evaluates_epochs:
                    task.after_epoch(session.model, record.epoch, album)
                task.after_evaluation(session.model, record, album)
        except WriteError as error:
            if session.settings.run.on_save_error == "stop":
                raise
            if not unwritten:
                what = f"{error}; the run continues without pictures"
                warnings.warn(what, RuntimeWarning, stacklevel=2)
            unwritten.append(error)

    return sink


def _totals(session: TrainingSession, run: Run, status: str) -> dict[str, Any]:
    """results.json as far as it follows from the log; what needs the best weights is still
    empty."""
    log, settings, step = read_log(run.path / LOG), session.settings, session.step
    evals = log.evals
    return {
        "status": status,
        "task": session.settings.task,
        "kind": session.task.kind,
        "classes": session.task.classes,
        "best_epoch": None,
        "best_update": None,
        "epochs": len({line["epoch"] for line in evals}) if settings.by_epochs else step.epoch,
        "evaluations": len(evals),
        "updates": log.last_update,
        "tokens": session.tokens,
        "seconds": log.seconds,
        "monitor": session.settings.recipe.monitor,
        "scores": {},
        "test_scores": None,
        "confusion": None,
        "per_class": None,
        "residuals": None,
        "intervals": None,
        "parameters": sum(p.numel() for p in session.model.parameters()),
        "pictures": [],
    }


def _of_best_weights(session: TrainingSession, album: Figures) -> dict[str, Any]:
    """The figures of the model, with the best weights in it, for each split."""
    val = session.score(session.val, collect=True)
    outputs, targets = val.details["outputs"], val.details["targets"]
    results: dict[str, Any] = {
        "confusion": val.details.get("confusion"),
        "per_class": named_classes(val.details.get("per_class"), session.task.classes),
    }
    if session.task.kind == "regression":
        results["residuals"] = residuals(session.task.point_outputs(outputs), targets)
        results["intervals"] = intervals_of(session.task, outputs, targets)
    elif session.task.classes and session.task.kind in ("multiclass", "binary"):
        results["calibration"] = calibration_of(outputs, targets)
    if session.test is not None:
        results["test_scores"] = session.score(session.test).scores
    with evaluating(session.model):
        session.task.pictures(session.model, session.splits, outputs, targets, album)
    results["pictures"] = album.entries
    return results


def named_classes(
    rows: list[dict[str, Any]] | None, classes: list[str] | None
) -> list[dict[str, Any]] | None:
    """The per-class scores with the classes' names in front."""
    if rows is None:
        return None
    names = classes or [str(k) for k in range(len(rows))]
    return [{**row, "name": names[k]} for k, row in enumerate(rows)]


def residuals(outputs: Tensor, targets: Tensor) -> dict[str, list[float]]:
    """Targets and predictions, at most 5000 pairs, evenly picked over the split."""
    prediction, target = outputs.flatten(), targets.flatten().float()
    if len(target) > MOST_RESIDUALS:
        chosen = torch.linspace(0, len(target) - 1, MOST_RESIDUALS).round().long()
        prediction, target = prediction[chosen], target[chosen]
    return {"target": target.tolist(), "prediction": prediction.tolist()}


def last_words(run: Run, results: dict[str, Any], report: Path, settings: Settings) -> list[str]:
    """The last lines on the terminal: the result first, then where everything is."""
    lines = [_result(results, settings)]
    if results["test_scores"]:
        name = headline(results["test_scores"], "test_loss")
        lines.append(f"{score_name(f'test_{name}')} {number(results['test_scores'][name])}")
    if (coverage := coverage_line(results)) is not None:
        lines.append(coverage)
    how = "" if results["status"] == "finished" else f", {results['status']}"
    lines.append(f"{duration(results['seconds'])}, {_done(results, settings)}{how}")
    lines.append(f"run     {shown(run.path)}")
    lines.append(f"report  {shown(report)}")
    if run.profile is not None:
        lines.append(f"profile {shown(run.path / FOLDER / TRACE)}: {in_short(run.profile)}")
    if found := faults(run):
        lines.append(f"found   {found}, which may make the result wrong")
    if results["status"] in ("interrupted", "out of time", "stopped"):
        lines.append(how_to_go_on(run))
    return lines


def _done(results: dict[str, Any], settings: Settings) -> str:
    """How much of the run was trained: "1,240 updates, 20 epochs", "900 of 5,000 updates"."""
    recipe, updates = settings.recipe, counted(results["updates"], "update")
    if recipe.epochs is not None:
        done = "" if results["epochs"] == recipe.epochs else f"{results['epochs']} of "
        return f"{updates}, {done}{counted(recipe.epochs, 'epoch')}"
    if recipe.updates is not None and results["updates"] < recipe.updates:
        return f"{results['updates']:,} of {counted(recipe.updates, 'update')}"
    if recipe.tokens is not None and results["tokens"] < recipe.tokens:
        return f"{updates}, {results['tokens']:,} of {counted(recipe.tokens, 'token')}"
    return updates if recipe.tokens is None else f"{updates}, {counted(results['tokens'], 'token')}"


def how_to_go_on(run: Run) -> str:
    return f"resume with: trueloop resume {shlex.quote(shown(run.path))}"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _print(lines: list[str]) -> None:
    """Print the lines, the result in bold where the terminal can."""
    from rich.console import Console

    console = Console(highlight=False)
    for k, line in enumerate(lines):
        style = "bold" if k == 0 else None
        console.print(line, style=style, markup=False, soft_wrap=True)


def shown(path: Path) -> str:
    """The path as one would type it here."""
    here = Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _result(results: dict[str, Any], settings: Settings) -> str:
    if results["best_epoch"] is None:
        if results["evaluations"]:
            what = "epochs" if settings.by_epochs else "evaluations"
            return f"the {score_name(results['monitor'])} was not finite in any of the {what}"
        first = "first epoch was complete" if settings.by_epochs else "first evaluation"
        return f"the run ended before its {first}, so it has no score"
    scores = results["scores"]
    bare = {n.removeprefix("val_"): v for n, v in scores.items() if n.startswith("val_")}
    name = headline(bare, results["monitor"].removeprefix("val_"))
    name = f"val_{name}" if f"val_{name}" in scores else results["monitor"]
    where = f"at update {results['best_update'] or 0:,} of {results['updates']:,}"
    if settings.by_epochs:
        where = f"at epoch {results['best_epoch']} of {settings.recipe.epochs}"
    return f"{score_name(name)} {number(scores[name])} {where}"


def headline(scores: dict[str, float], monitor: str) -> str:
    """The monitored score, unless that is a loss and the metrics have one that says more."""
    bare = monitor.removeprefix("test_")
    if bare in scores and "loss" not in bare:
        return bare
    return next((name for name in _HEADLINES if name in scores), "loss")
