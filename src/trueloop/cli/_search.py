"""`trueloop tune TASK --search FILE`: the search's options checked, its processes, its end."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.cli import OK
from trueloop.cli._tune_options import TuneOptions, stated_of_train
from trueloop.cli.config_file import read_config
from trueloop.cli.options import RunOptions, Settings, settings_from
from trueloop.errors import ConfigError, Interrupted, RunError, UserError
from trueloop.formatting import number, score_name
from trueloop.records import direction
from trueloop.tasks import Recipe
from trueloop.tune.search import StudyRunner
from trueloop.tune.space import FIXED, Space, parse_space
from trueloop.tune.study import StudyConfig, StudyFolder, import_optuna
from trueloop.tune.study_page import best_command, best_trial, write_page
from trueloop.tune.trial_processes import TrialProcesses

if TYPE_CHECKING:
    import optuna

_OF_TRAIN = (
    "jinja2", "jsonargparse", "matplotlib.figure", "plotly", "rich.progress", "torch._dynamo",
    "trueloop.cli._doctor", "trueloop.cli._training", "trueloop.cli._session",
    "trueloop.cli.train", "trueloop.doctor.live.session", "trueloop.loop", "trueloop.tasks",
)  # fmt: skip
"""The modules that a run imports: seconds of each trial, if the process that starts them has not
imported them."""
STUDIES = Path("studies")
"""Where studies go that are given no folder."""


def search(settings: Settings, options: TuneOptions, say: Callable[[str], None]) -> int:
    """Make the trials that are left of the search; the exit status."""
    import_optuna()
    plan = plan_of(settings, options)
    folder = StudyFolder(options.study or _default(settings), plan)
    with folder.opened():
        study = folder.study(options.pruner, settings.recipe.epochs)
        try:
            _run(folder, study, options, say)
        except KeyboardInterrupt as stop:
            # Told while the interruption is being handled: it would be repeated otherwise.
            _report(folder, study, options)
            number = getattr(stop, "signal", signal.SIGINT)
            raise Interrupted(number, "the same command resumes the search") from None
        except RunError:
            write_page(folder, study)
            raise
        _report(folder, study, options)
    return OK


def plan_of(settings: Settings, options: TuneOptions) -> StudyConfig:
    """The space of the search, with every end of every range checked. Raises `ConfigError`."""
    assert options.search is not None
    source = str(options.search)
    content = _read_space(options.search)
    stated = stated_of_train(settings)
    known = _known(settings)
    space = parse_space(content, source, known, [n for n in stated if n not in FIXED])
    _check_values(settings, stated, space, source)
    monitor = settings.recipe.monitor
    return StudyConfig(
        task=settings.task,
        options={**stated, "monitor": monitor, "hang_exit": True},
        space=space,
        monitor=monitor,
        mode=direction(monitor) or "min",
        seed=settings.run.seed,
        epochs=settings.recipe.epochs,
    )


def _read_space(path: Path) -> dict[str, Any]:
    try:
        return read_config(path)
    except ConfigError as error:
        raise ConfigError(str(error).replace("--config", "--search")) from None


def _known(settings: Settings) -> set[str]:
    """The names of the options of `trueloop train` for this task."""
    classes = (type(settings.options), Recipe, RunOptions)
    return {field.name for cls in classes for field in dataclasses.fields(cls)}


def _check_values(settings: Settings, stated: dict[str, Any], space: Space, source: str) -> None:
    """Refuse a space with values that train would refuse."""
    for name, dimension in space.items():
        for value in dimension.ends():
            try:
                settings_from(settings.task, [], file={**stated, name: value}, source=source)
            except UserError as error:
                words = str(error).removeprefix(f"{source}: ")
                raise ConfigError(f"{source}: {name}: {value!r} cannot be: {words}") from None


def _default(settings: Settings) -> Path:
    name = settings.task_class.__name__ if ":" in settings.task else settings.task
    return (STUDIES / re.sub(r"[^a-z0-9_-]", "-", name.lower())).absolute()


def _run(
    folder: StudyFolder, study: optuna.Study, options: TuneOptions, say: Callable[[str], None]
) -> None:
    import torch

    seconds = None if options.minutes is None else 60 * options.minutes
    with TrialProcesses(prepare, torch.get_num_threads()) as processes:
        processes.ready()
        StudyRunner(
            folder, study, processes, say=say, after_trial=lambda: _renew(folder, study)
        ).run(options.trials, seconds)


def _renew(folder: StudyFolder, study: optuna.Study) -> None:
    """The page, and the disk: of a beaten or pruned trial the weights are not kept."""
    write_page(folder, study)
    best = best_trial(folder.plan, study.get_trials(deepcopy=False))
    for trial in study.get_trials(deepcopy=False):
        if trial.state.is_finished() and (best is None or trial.number != best.number):
            _forget_weights(folder.run_of(trial.number) / "checkpoints")


def _forget_weights(checkpoints: Path) -> None:
    import shutil

    if checkpoints.is_dir():
        shutil.rmtree(checkpoints, ignore_errors=True)


def _report(folder: StudyFolder, study: optuna.Study, options: TuneOptions) -> None:
    """The results of the search."""
    from trueloop.cli._training import shown

    page = write_page(folder, study)
    trials = study.get_trials(deepcopy=False)
    best = best_trial(folder.plan, trials)
    if options.format == "json":
        content = {
            "task": folder.plan.task,
            "monitor": folder.plan.monitor,
            "trials": [
                {
                    "number": trial.number,
                    "state": trial.state.name.lower(),
                    "value": trial.value if trial.state.name == "COMPLETE" else None,
                    "params": trial.params,
                    "reason": trial.user_attrs.get("reason"),
                }
                for trial in trials
            ],
            "best": None if best is None else best.number,
            "report": str(page),
            "config": None if best is None else str(folder.path / "best.yaml"),
        }
        print(json.dumps(content, indent=2, ensure_ascii=False))
        return
    if best is None:
        print("no trial has finished")
    else:
        values = ", ".join(f"{name} {value}" for name, value in best.params.items())
        print(f"{score_name(folder.plan.monitor)} {number(best.value)} of trial {best.number}")
        print(f"with    {values}")
        print(f"train   {best_command(folder)}")
    print(f"report  {shown(page)}")


def prepare(count: int) -> tuple[Callable[[Sequence[str]], int], None]:
    """Runs a trial's command in a copy of the process that runs this; the slow imports are done
    there."""
    import importlib

    import torch

    from trueloop.cli import keep_libraries_quiet, main

    for name in _OF_TRAIN:
        importlib.import_module(name)
    keep_libraries_quiet()
    torch.set_num_threads(1)

    def train(words: Sequence[str]) -> int:
        torch.set_num_threads(count)
        with contextlib.suppress(AttributeError, ValueError):
            sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
        return main(list(words))

    return train, None
