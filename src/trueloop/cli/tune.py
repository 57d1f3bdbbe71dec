"""`trueloop tune TASK`: measure how its training is made faster, and write that as a config."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.cli import OK
from trueloop.cli._out_folder import check_out_folder
from trueloop.errors import ConfigError, Interrupted, RunError

if TYPE_CHECKING:
    from trueloop.cli._tune_options import TuneOptions
    from trueloop.cli.options import Settings
    from trueloop.tune.goal import Goal
    from trueloop.tune.results import TuningResults
    from trueloop.tune.tuning import TimeBudget, Tuning

_SHARE_OF_FREE = 0.8
_GB = 1e9
_MISTAKES_SECONDS = 2.0
"""Of reading, within which a path that does not exist and the like are found: only the error is
printed."""


def main(argv: Sequence[str]) -> int:
    """Tune; the exit status."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return OK
    from trueloop.cli._tune_options import TuneOptions, check
    from trueloop.cli.options import settings_from, task_first

    task, words = task_first(argv, "tune")
    settings = settings_from(task, words, run_options=TuneOptions)
    options = settings.run
    assert isinstance(options, TuneOptions)
    check(options)
    if options.search is not None:
        from trueloop.cli._search import search

        return search(settings, options, _teller(options))
    return _measure(settings, options)


def usage() -> str:
    return (
        "usage: trueloop tune TASK [options]\n\n"
        "Measure what makes a training faster, in separate trials: the learning rate\n"
        "(range test), the batch size, workers, threads, precision, compilation, each by\n"
        "itself and then all together; and write the useful changes as a file for\n"
        "trueloop train --config. Or, with --search FILE, search for the best values of\n"
        "options by training with them.\n\n"
        "  trueloop tune TASK --help     the options: --minutes, --search, those of train\n\n"
        "example:\n"
        "  trueloop tune images --data photos --minutes 5 --out tuned.yaml\n"
        "  trueloop train --config tuned.yaml\n"
        "  trueloop tune digits --search space.yaml --trials 30 --epochs 10"
    )


def _measure(settings: Settings, options: TuneOptions) -> int:
    """Measure within the time, and write what follows; the exit status."""
    from trueloop.cli._tune_options import MINUTES, stated_of_train
    from trueloop.tune.tuning import TimeBudget

    files, stated = _Files(options), stated_of_train(settings)
    goal = _goal(settings, options)
    minutes = MINUTES if options.minutes is None else options.minutes
    budget = TimeBudget(60 * minutes, has_goal=goal is not None)
    begun: list[Tuning] = []
    try:
        _run_trials(settings, {**stated, "quiet": True}, options, budget, goal, begun)
    except KeyboardInterrupt as stop:
        # Concluded while the interruption is being handled: it would be repeated otherwise.
        if not begun or begun[0].findings is None:
            raise
        _conclude(settings, stated, begun[0].findings, files, options, budget.spent())
        words = f"what was measured is in {_shown(files.out)}"
        raise Interrupted(getattr(stop, "signal", signal.SIGINT), words) from None
    findings = begun[0].findings
    assert findings is not None
    _conclude(settings, stated, findings, files, options, budget.spent())
    return OK


def _run_trials(
    settings: Settings,
    given: dict[str, Any],
    options: TuneOptions,
    budget: TimeBudget,
    goal: Goal | None,
    begun: list[Tuning],
) -> None:
    """Do all trials; what they find is in the `Tuning` that is put into `begun`."""
    import torch

    from trueloop.cli._trial import prepare
    from trueloop.tune.trial_processes import TrialProcesses
    from trueloop.tune.tuning import Tuning

    say = _teller(options)
    with TrialProcesses(prepare, settings.task, given, torch.get_num_threads()) as trials:
        trials.started(budget.seconds)
        facts = trials.ready(min(_MISTAKES_SECONDS, budget.seconds))
        if facts is None:
            say("reading the data")
            facts = trials.ready(budget.seconds)
        if facts is None:
            raise ConfigError(
                f"--minutes {budget.seconds / 60:g} is too little to measure anything: the data "
                "were not read by then; write a larger --minutes"
            )
        tuning = Tuning(trials, facts, budget, memory=_memory(options), say=say, goal=goal)
        begun.append(tuning)
        try:
            tuning.run()
        except RunError as error:
            if tuning.findings is None:
                raise
            tuning.findings.notes.append(f"ended early: {error}")


def _goal(settings: Settings, options: TuneOptions) -> Goal | None:
    """The goal of `--goal`, for the score that the run monitors. Raises `ConfigError`."""
    from trueloop.records import direction
    from trueloop.tune.goal import Goal

    monitor = settings.recipe.monitor
    if options.goal is None:
        return None
    if not monitor.startswith("val_"):
        raise ConfigError(
            f"--goal is a score of the validation set, and --monitor is {monitor}: write --monitor "
            "val_loss"
        )
    return Goal(monitor=monitor, value=options.goal, mode=direction(monitor) or "min")


def _memory(options: TuneOptions) -> int | None:
    """Bytes that a trial may take."""
    from trueloop.tune.memory import available_memory

    if options.memory_limit_gb is not None:
        return int(options.memory_limit_gb * _GB)
    free = available_memory()
    return None if free is None else int(_SHARE_OF_FREE * free)


class _Files:
    """Where the results go; refused at once where that is taken or cannot be written."""

    def __init__(self, options: TuneOptions) -> None:
        self.out = options.out
        self.rates = self._beside("lr")
        self.batches = self._beside("batch")
        taken = [path for path in (self.out, self.rates, self.batches) if path.exists()]
        if taken and not options.force:
            raise ConfigError(
                f"{taken[0]} exists: choose a different --out, or replace it with --force"
            )
        check_out_folder(self.out)

    def _beside(self, name: str) -> Path:
        return self.out.with_name(f"{self.out.stem}-{name}.png")


def _teller(options: TuneOptions) -> Callable[[str], None]:
    """Says what is being measured, on stderr: in one line that changes, of a terminal."""
    if options.quiet:
        return lambda text: None
    if sys.stderr.isatty():
        return lambda text: print(f"\r\033[K{text} …", end="", file=sys.stderr, flush=True)
    return lambda text: print(f"{text} …", file=sys.stderr, flush=True)


def _conclude(
    settings: Settings,
    stated: dict[str, Any],
    findings: TuningResults,
    files: _Files,
    options: TuneOptions,
    seconds: float,
) -> None:
    """Write the configuration and the pictures, and say what was found."""
    from trueloop.checkpoint import write_atomic
    from trueloop.tune import plots, text_report
    from trueloop.tune.proposed_config import as_config

    if sys.stderr.isatty() and not options.quiet:
        print("\r\033[K", end="", file=sys.stderr, flush=True)
    text = as_config(settings.task, stated, findings, seconds)
    write_atomic(files.out, text.encode())
    drawn = plots.draw(findings, files.rates, files.batches)
    if options.format == "json":
        print(
            json.dumps(
                text_report.as_json(findings, files.out, drawn), indent=2, ensure_ascii=False
            )
        )
        return
    text_report.print_text(findings, seconds)
    for path in drawn:
        print(f"picture  {_shown(path)}")
    print(f"config   {_shown(files.out)}")
    print(f"train    trueloop train --config {_shown(files.out)}")


def _shown(path: Path) -> str:
    from trueloop.cli._training import shown

    return shown(path)
