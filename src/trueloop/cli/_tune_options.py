"""The options of `trueloop tune`."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from trueloop.cli.options import MANY, RunOptions, Settings
from trueloop.errors import ConfigError
from trueloop.option import option
from trueloop.tasks import limits
from trueloop.tasks.limits import check_range

MINUTES = 3.0
"""The default."""
_LEAST_MINUTES = 0.05
"""Less does not even start a process that has torch."""
_MOST_TRIALS = 100_000


@dataclass(frozen=True, kw_only=True)
class TuneOptions(RunOptions):
    """The options of train that apply to a trial, and those of tune."""

    verb: ClassVar[str] = "tune"
    left_out: ClassVar[frozenset[str]] = frozenset({"run", "resume", "profile", *MANY})
    usual: ClassVar[frozenset[str]] = frozenset(
        {"minutes", "goal", "out", "force", "memory_limit_gb", "format", "search", "study"}
        | {"trials", "pruner", "epochs", "updates", "batch_size", "data", "seed", "device"}
    )

    minutes: float | None = option(
        None, group="the measurement", unit="minutes", unset="3, of a search no limit"
    )
    """Time for all measurements; with --search, no trial starts after this time."""
    goal: float | None = option(None)
    """A sufficient value of the monitored score: find the shortest run that reaches it."""
    out: Path = option(Path("tuned.yaml"))
    """File to write, for trueloop train --config; its pictures are written next to it."""
    force: bool = option(False)
    """Replace the files of --out if they exist."""
    memory_limit_gb: float | None = option(None, unit="GB", unset="80% of the free memory")
    """Host memory that a trial may use in addition to the data."""
    format: str = option("text", choices=("text", "json"))
    """How the result is printed."""
    search: Path | None = option(None, group="the search")
    """YAML or TOML file with ranges of options: search for the best values instead of measuring
    speed."""
    study: Path | None = option(None, unset="studies/TASK")
    """Folder of the search; an existing search is resumed."""
    trials: int = option(20)
    """Trials of the search, including those already in its folder."""
    pruner: str = option("median", choices=("median", "hyperband", "none"))
    """How the search stops unpromising trials."""


OWN = frozenset({field.name for field in dataclasses.fields(TuneOptions)}) - frozenset(
    {field.name for field in dataclasses.fields(RunOptions)}
)
"""Options that no run has."""


def check(options: TuneOptions) -> None:
    """Refuse values that cannot work. Raises `ConfigError`."""
    check_range("--minutes", options.minutes, 0, limits.MOST_MINUTES, example=MINUTES)
    if options.minutes is not None and options.minutes < _LEAST_MINUTES:
        raise ConfigError(
            f"--minutes {options.minutes:g} is too little to measure anything: write --minutes "
            f"{MINUTES:g}"
        )
    check_range(
        "--memory-limit-gb", options.memory_limit_gb, 0, limits.MOST_GIGABYTES, unit="GB",
        open_below=True, example=8,
    )  # fmt: skip
    if options.goal is not None and not math.isfinite(options.goal):
        raise ConfigError(f"--goal must be a number, not {options.goal}: write --goal 0.99")
    check_range("--trials", options.trials, 1, _MOST_TRIALS, unit="trials", example=20)
    if options.search is None:
        for name in ("study", "trials", "pruner"):
            if getattr(options, name) != getattr(TuneOptions, name):
                raise ConfigError(f"--{name} is for a search: write --search FILE with it")
    elif options.goal is not None:
        raise ConfigError("--goal and --search exclude each other: write one of them")


def stated_of_train(settings: Settings) -> dict[str, Any]:
    """The options that the user gave, as plain data, without those that only `tune` takes."""
    plain = settings.config()
    return {
        name: plain[name] for name in sorted(settings.stated) if name in plain and name not in OWN
    }
