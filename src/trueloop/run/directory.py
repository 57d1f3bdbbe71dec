"""A run is a directory: what was asked, on what machine, what happened, and what came out of it.

config.json       every option, resolved
environment.json  versions, device, command line, start time, digest of the data
changes.patch     what git has not committed of the code (`run.lineage`)
data.json         facts about the data
task.json         from which the task is rebuilt without its data
findings.json     what the data checks and the doctor have found
metrics.jsonl     one line per logged update and per evaluation (`run.log`)
results.json      written at the end, however it ended
log/rank-K.jsonl  what each rank does, on request (`run.rank_log`)
trackers/NAME     what a tracker keeps, on request (`trackers`)
evaluations/      what later evaluations found, and with what (`run.lineage`)
checkpoints/  pictures/  report.html  plotly.min.js
"""

from __future__ import annotations

import functools
import importlib
import shutil
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, ParamSpec

from trueloop import _options, ranks, seed as seeds
from trueloop.checkpoint.lock import is_held
from trueloop.errors import RunError
from trueloop.records import EvalRecord, StepRecord
from trueloop.run.environment import environment as this_environment
from trueloop.run.folder import (
    CONFIG,
    begin_again,
    claimed_by_main,
    is_run,
    make,
    no_run,
    remove,
    runs_below,
    temporary_files,
)
from trueloop.run.json_files import read_json, unspell, write_json
from trueloop.run.log import LOG, MetricsLog, best_eval, read_metrics
from trueloop.run.log_reader import LogReader

if TYPE_CHECKING:
    import polars as pl
    from torch import nn

P = ParamSpec("P")
UNFINISHED = "unfinished"
"""The status of a run without results: killed, or of a loop of the user's own."""
UNREADABLE = "unreadable"
"""The status that `Run.find` gives to a run whose files are damaged."""
_NUMBERS = ("scores", "test_scores", "residuals", "intervals")  # of results.json


def _by_main_alone(method: Callable[P, None]) -> Callable[P, None]:
    """A method that writes: of many ranks the main one does it."""

    @functools.wraps(method)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> None:
        if ranks.is_main():
            method(*args, **kwargs)

    return wrapped


class Run:
    """The run directory at `path`. Its content is read when asked for, never kept.

    Of many ranks the main one makes and writes it; all of them have to see the same folder.

    Args:
        path: the directory of a run: of `trueloop train`, or made by `Run.create`.

    Raises:
        RunError: `path` is not a run.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = _options.path("path", path)
        if not is_run(self.path):
            raise RunError(no_run(self.path))

    @classmethod
    def create(
        cls,
        path: Path | str,
        *,
        config: Mapping[str, Any],
        environment: Mapping[str, Any] | None = None,
    ) -> Run:
        """Make the directory (parents included) and write what is known before training starts.

        Of many ranks the main one makes it: each of them calls this, and all raise where it fails.

        Args:
            path: the new directory.
            config: the resolved options, as plain data.
            environment: versions, device and command line; None for those of this process.

        Returns:
            The run.

        Raises:
            RunError: `path` is a file or a folder that is not empty, or cannot be created or
                written.
            ConfigError: `config` or `environment` is not a dict.
        """
        path = _options.path("path", path)
        _options.mapping("config", config, "{'lr': 1e-3}")
        if environment is not None:
            _options.mapping("environment", environment, "{'device': 'cpu'}")
        facts = this_environment() if environment is None else environment
        ranks.on_main(lambda: make(path, config, facts), "the making of the run directory")
        run = object.__new__(cls)  # on another host, a shared folder may show it a moment later
        run.path = path
        return run

    @_by_main_alone
    def discard(self) -> None:
        """Remove the directory with its content."""
        remove(self.path)

    @_by_main_alone
    def begin_again(self, environment: Mapping[str, Any]) -> None:
        """Remove the results of the run, so that it can start again with the same `config.json`.

        What others have put into the directory (a scheduler's log) stays.

        Args:
            environment: versions, device and command line of the new start.

        Raises:
            RunError: something cannot be removed or written.
        """
        begin_again(self.path, environment)

    def litter(self) -> list[Path]:
        """Return our temporary files: those being written, and those that a killed process left."""
        pictures = (self.path / "pictures").glob("**/")
        return temporary_files(self.path, self.checkpoints, *pictures)

    @_by_main_alone
    def remove_litter(self) -> None:
        """Remove what a killed process left half-written. Hold the directory before."""
        for entry in self.litter():
            if entry.is_dir():
                shutil.rmtree(entry, ignore_errors=True)
            else:
                entry.unlink(missing_ok=True)

    def claimed(self) -> AbstractContextManager[None]:
        """Return a context that locks the directory against other processes that would train in it.

        Of many ranks the main one locks it for all: each of them calls this.
        """
        return claimed_by_main(self.path)

    @property
    def name(self) -> str:
        """The last part of the path."""
        return self.path.resolve().name

    @property
    def config(self) -> dict[str, Any]:
        """The resolved options."""
        return read_json(self.path / CONFIG)

    def option(self, name: str, default: Any = None) -> Any:
        """The value of an option, at any depth of a nested `config`.

        Args:
            name: the option.
            default: what is returned where there is none.

        Returns:
            Plain data.
        """
        return _search(self.config, name, default)

    @property
    def environment(self) -> dict[str, Any]:
        """Versions, device, command line, start time; empty if not recorded."""
        return self._read("environment.json")

    @property
    def data(self) -> dict[str, Any]:
        """Facts about the data; empty if not recorded."""
        return self._read("data.json")

    @property
    def task_state(self) -> dict[str, Any]:
        """The argument of `Task.restore`; empty if not recorded."""
        return self._read("task.json")

    @property
    def profile(self) -> dict[str, Any] | None:
        """The summary of the profiler's trace, of `profile/summary.json`; None without one."""
        return self._read("profile/summary.json") or None

    @property
    def findings(self) -> list[dict[str, Any]] | None:
        """The findings of the data checks and the doctor; None if neither has run.

        Each is a dict with `code`, `name`, `severity`, `path`, `line`, `column`, `place` in words,
        `message`, `fix`, `count` and `seen` (`data` or `live`).

        Raises:
            RunError: the file is damaged.
        """
        found = self._read("findings.json").get("findings")
        if found is not None and not (
            isinstance(found, list) and all(isinstance(each, dict) for each in found)
        ):
            raise RunError(
                f"{self.path / 'findings.json'} is corrupt (it has no list of findings): delete it"
            )
        return found

    @property
    def results(self) -> dict[str, Any]:
        """The results of the run; empty until it has ended.

        Raises:
            RunError: the file is damaged.
        """
        results = self._read("results.json")
        if not _has_shape(results):
            raise RunError(
                f"{self.path / 'results.json'} is corrupt (a list or a number in the wrong place): "
                "restore it or train the run again"
            )
        for name in _NUMBERS:
            if name in results:
                results[name] = unspell(results[name])
        for row in results.get("per_class") or []:
            # A class may well be called NaN: its name stays what it is.
            row.update({key: unspell(row[key]) for key in row if key != "name"})
        return results

    def metrics(self) -> list[dict[str, Any]]:
        """Return the lines of metrics.jsonl, without a last one that a crash cut short."""
        return read_metrics(self.path / LOG)

    def model(self, *, device: str = "auto") -> nn.Module:
        """The model of a run of `trueloop train`, with its best weights, in eval mode.

        It is only the network, as the run's task makes it: its inputs are what the task prepares,
        see docs/using-a-model.md. The global generators do not change.

        Args:
            device: where it is put: "auto", "cpu", "cuda", "cuda:1", "mps".

        Returns:
            The module; its parameters have `requires_grad=False`.

        Raises:
            RunError: no weights are saved, or they do not fit.
            DeviceError: the device is not there.
        """
        model: nn.Module = self._trained(device).model
        return model.eval().requires_grad_(False)

    def predict(self, data: Any, *, device: str = "auto", **options: Any) -> pl.DataFrame:
        """Predictions of the run's best weights, as `trueloop predict` writes them.

        Args:
            data: a path, as for `--data`; or, for a table, a data frame, a dict of columns or a
                list of rows that are dicts; for images, a list of Pillow images, uint8 arrays
                (height, width, channels), uint8 tensors (channels, height, width) or file names;
                for any other task a tensor, array or data set of the model's inputs.
            device: as for `model`.
            options: `calibrated`, `threshold` and `keep` (a list of columns), as `trueloop predict`
                takes them.

        Returns:
            A data frame of polars with one row for each of `data`, and a column `error` for those
            that could not be read.

        Raises:
            DataError: the data cannot be used.
            RunError: no weights are saved, or they do not fit.
            DeviceError: the device is not there.
        """
        predictions = _command_line("predict").predictions
        frame: pl.DataFrame = predictions(self._trained(device), data, **options)[0]
        return frame

    def _trained(self, device: str) -> Any:
        with seeds.rng_preserved():  # making a model draws its first weights
            return _command_line("_session").load_trained(self, device, quiet=True)

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints; it need not exist yet."""
        return self.path / "checkpoints"

    @property
    def status(self) -> str:
        """How the run ended, or `unfinished`."""
        return str(self.results.get("status", UNFINISHED))

    @_by_main_alone
    def write_data(self, facts: Mapping[str, Any]) -> None:
        """Store facts about the data.

        Args:
            facts: plain data.
        """
        write_json(self.path / "data.json", facts)

    @_by_main_alone
    def add_findings(self, findings: Iterable[Mapping[str, Any]]) -> None:
        """Store findings after those that there are; of the same code and place, the new one.

        Args:
            findings: dicts of plain data, see `findings`.
        """
        known = {(each.get("code"), each.get("place")): each for each in self.findings or []}
        known |= {(each.get("code"), each.get("place")): dict(each) for each in findings}
        write_json(self.path / "findings.json", {"findings": list(known.values())})

    @_by_main_alone
    def write_environment(self, environment: Mapping[str, Any]) -> None:
        """Store versions, device and command line.

        Args:
            environment: plain data, as `environment()` returns it.
        """
        write_json(self.path / "environment.json", environment)

    @_by_main_alone
    def write_task(self, state: Mapping[str, Any]) -> None:
        """Store the state of the task.

        Args:
            state: what `Task.state` returned.
        """
        write_json(self.path / "task.json", state)

    @_by_main_alone
    def forget_results(self) -> None:
        """Remove the results of a run that is being extended."""
        for name in ("results.json", "report.html"):
            (self.path / name).unlink(missing_ok=True)

    @_by_main_alone
    def write_config(self, config: Mapping[str, Any]) -> None:
        """Replace the resolved options of a run that is being extended.

        Args:
            config: plain data.
        """
        write_json(self.path / CONFIG, config)

    @_by_main_alone
    def write_results(self, results: Mapping[str, Any]) -> None:
        """Store the results of the run.

        Args:
            results: plain data.
        """
        write_json(self.path / "results.json", results)

    def log(self, *, on_error: str = "stop", by_line: bool = False) -> MetricsLog:
        """Open the run's log for appending.

        Args:
            on_error: `stop` or `continue`, see `MetricsLog`.
            by_line: see `MetricsLog`.

        Returns:
            The log.
        """
        return MetricsLog(self.path / LOG, on_error=on_error, by_line=by_line)

    def sinks(
        self, *, on_error: str = "stop", by_line: bool = False
    ) -> list[Callable[[StepRecord | EvalRecord], None]]:
        """The sinks that `fit` adds for a run: the log; of many ranks only the main one has it.

        Args:
            on_error: `stop` or `continue`, see `MetricsLog`.
            by_line: see `MetricsLog`.

        Returns:
            Functions of one record.
        """
        return [self.log(on_error=on_error, by_line=by_line)] if ranks.is_main() else []

    @classmethod
    def find(cls, folder: Path | str) -> list[RunSummary]:
        """Every run in or below a folder. A damaged run is listed as `unreadable`.

        Args:
            folder: where to look.

        Returns:
            A summary of each, ordered by path.

        Raises:
            RunError: `folder` is not a folder.
        """
        folder = _options.path("folder", folder)
        if not folder.is_dir():
            raise RunError(f"no folder {folder}: name the folder that your runs are in")
        return [summarize(path) for path in sorted(runs_below(folder))]

    def _read(self, name: str) -> dict[str, Any]:
        path = self.path / name
        return read_json(path) if path.exists() else {}

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r})"


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """One line of `trueloop runs`.

    Attributes:
        path: the run directory.
        status: how the run ended, `running`, `unfinished` or `unreadable`.
        task: name of the task; None if not recorded.
        monitor: the score that says which epoch is the best.
        score: the best value of the monitored score.
        epochs: epochs done.
        updates: updates applied.
        seconds: wall time of the training.
        started: ISO 8601, UTC.
        problem: why the run is unreadable.
    """

    path: Path
    status: str
    task: str | None = None
    monitor: str | None = None
    score: float | None = None
    epochs: int | None = None
    updates: int | None = None
    seconds: float | None = None
    started: str | None = None
    problem: str | None = None


def summarize(path: Path) -> RunSummary:
    """The entry of the run at `path` in a list of runs; never raises for a damaged one."""
    try:
        run = Run(path)
        results, log = run.results, LogReader(run.path / LOG)
        if not results:
            log.read()
        monitor = results.get("monitor") or run.option("monitor", "val_loss")
        is_logged, evals = bool(len(log.updates) or log.evals), log.evals
        return RunSummary(
            path=path,
            status="running" if is_held(path) else run.status,
            task=results.get("task") or run.option("task"),
            monitor=monitor,
            score=(results.get("scores") or best_eval(evals, monitor) or {}).get(monitor),
            epochs=results.get("epochs", len(evals)),
            updates=results.get("updates", log.last_update if is_logged else None),
            seconds=results.get("seconds", log.seconds if is_logged else None),
            started=run.environment.get("started"),
        )
    except (RunError, TypeError, KeyError, AttributeError) as error:
        # Valid JSON of the wrong shape is damage as well; a list of runs must survive either.
        return RunSummary(path=path, status=UNREADABLE, problem=str(error))


def _command_line(name: str) -> ModuleType:
    """A module of the package that can build the run's task again, which is on a floor above."""
    return importlib.import_module(f"trueloop.cli.{name}")


def _has_shape(results: Mapping[str, Any]) -> bool:
    """Whether what all readers of results.json go by is of the right kind, where it is there."""
    rows = [results.get(name) or [] for name in ("per_class", "pictures", "confusion")]
    return (
        all(isinstance(results.get(name) or {}, dict) for name in _NUMBERS)
        and all(isinstance(some, list) for some in rows)
        and all(isinstance(row, dict) for some in rows[:2] for row in some)
        and isinstance(results.get("status", ""), str)
    )


def _search(config: Mapping[str, Any], name: str, default: Any) -> Any:
    if name in config:
        return config[name]
    for value in config.values():
        if isinstance(value, Mapping):
            found = _search(value, name, default)
            if found is not default:
                return found
    return default
