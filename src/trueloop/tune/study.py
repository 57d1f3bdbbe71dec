"""The folder of a search: what it is of, what its trials gave, and where their runs are.

study.json        task, options, space and monitored score: what has to stay the same
study.db          optuna's study, in SQLite
trials/0007.yaml  the options of a trial, for trueloop train --config
trials/0007/      its run; trials/0007.log what it printed
best.yaml, report.html
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.checkpoint import write_atomic
from trueloop.checkpoint.lock import claimed
from trueloop.errors import MissingDependencyError, RunError
from trueloop.tune.space import Range, Space, plain_space

if TYPE_CHECKING:
    import optuna

_ABOUT = "study.json"
_WORDS = {
    "task": "the task",
    "options": "the options",
    "space": "the space",
    "monitor": "--monitor",
}


@dataclass(frozen=True, kw_only=True)
class StudyConfig:
    """The subject of a search."""

    task: str
    options: dict[str, Any]
    """Options of train that all trials share."""
    space: Space
    monitor: str
    mode: str
    """`min` or `max`."""
    seed: int = 0
    epochs: int | None = None
    """Of a trial whose options do not say how many."""

    def plain(self) -> dict[str, Any]:
        return {
            "task": self.task,
            "options": self.options,
            "space": plain_space(self.space),
            "monitor": self.monitor,
        }


class StudyFolder:
    """The folder at `path`, made or gone on with."""

    def __init__(self, path: Path, plan: StudyConfig) -> None:
        self.path, self.plan = path, plan
        self.is_new = not (path / _ABOUT).is_file()

    @contextmanager
    def opened(self) -> Iterator[None]:
        """Hold the folder against other processes; `RunError` where it is of a different search."""
        try:
            if self.is_new and self.path.is_dir() and any(self.path.iterdir()):
                raise RunError(f"{self.path} exists and is not a study: choose a different --study")
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunError(
                f"cannot use the study folder {self.path} ({error.strerror}): choose a different "
                "--study"
            ) from None
        with claimed(self.path):
            self._check_same()
            (self.path / "trials").mkdir(exist_ok=True)
            yield

    def _check_same(self) -> None:
        mine = self.plan.plain()
        about = self.path / _ABOUT
        if self.is_new:
            write_atomic(about, json.dumps(mine, indent=2).encode())
            return
        try:
            kept = json.loads(about.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise RunError(
                f"{about} cannot be read ({error}): choose a different --study"
            ) from None
        for name, words in _WORDS.items():
            if kept.get(name) != json.loads(json.dumps(mine[name])):
                raise RunError(
                    f"{self.path} is a study with a different {words.removeprefix('the ')} "
                    f"({_first_difference(kept.get(name), mine[name])}): choose a different "
                    "--study, or restore the option"
                )

    def study(self, pruner: str, evaluations: int | None) -> optuna.Study:
        """Optuna's study of this folder. `evaluations` are those of a whole trial, if known."""
        library = import_optuna()
        from sqlalchemy.engine import URL

        url = URL.create("sqlite", database=str(self.path / "study.db"))
        storage = library.storages.RDBStorage(str(url))
        name, direction = "trueloop", "minimize" if self.plan.mode == "min" else "maximize"
        study: optuna.Study = library.create_study(
            storage=storage, study_name=name, direction=direction, load_if_exists=True,
            pruner=_pruner(library, pruner, evaluations),
        )  # fmt: skip
        # A sampler that began with the same seed again would repeat its first draws.
        study.sampler = library.samplers.TPESampler(seed=self.plan.seed + len(study.trials))
        return study

    def run_of(self, number: int) -> Path:
        return self.path / "trials" / f"{number:04d}"

    def config_of(self, number: int) -> Path:
        return self.path / "trials" / f"{number:04d}.yaml"

    def log_of(self, number: int) -> Path:
        return self.path / "trials" / f"{number:04d}.log"


def _first_difference(kept: Any, mine: Any) -> str:
    if not isinstance(kept, dict) or not isinstance(mine, dict):
        return f"{kept}, not {mine}"
    name = next(name for name in {**kept, **mine} if kept.get(name) != mine.get(name))
    return f"{name}: {kept.get(name)}, not {mine.get(name)}"


def import_optuna() -> Any:
    """The library, quiet. Raises `MissingDependencyError`."""
    try:
        import optuna
    except ImportError:
        raise MissingDependencyError(
            "the search is optuna's, which is not installed: pip install 'trueloop[tune]'"
        ) from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


def _pruner(optuna: Any, name: str, evaluations: int | None) -> Any:
    if name == "none":
        return optuna.pruners.NopPruner()
    if name == "median":
        return optuna.pruners.MedianPruner(n_startup_trials=5, n_warmup_steps=2)
    return optuna.pruners.HyperbandPruner(
        min_resource=1, max_resource=evaluations or "auto", reduction_factor=3
    )


def distributions(space: Space) -> dict[str, Any]:
    """The space as optuna has it."""
    kinds = import_optuna().distributions
    found: dict[str, Any] = {}
    for name, dimension in space.items():
        if not isinstance(dimension, Range):
            found[name] = kinds.CategoricalDistribution(dimension.values)
        elif dimension.is_whole:
            low, high, step = int(dimension.low), int(dimension.high), int(dimension.step or 1)
            found[name] = kinds.IntDistribution(low, high, log=dimension.log, step=step)
        else:
            found[name] = kinds.FloatDistribution(
                dimension.low, dimension.high, log=dimension.log, step=dimension.step
            )
    return found
