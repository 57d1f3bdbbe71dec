"""The run that a command without RUN is about: the latest in the folder of runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from trueloop.cli._one_run import RUNS
from trueloop.errors import ConfigError, RunError

if TYPE_CHECKING:
    from trueloop.cli.parser import Parser

UNSET = f"the latest in {RUNS}/"
"""For `--help`."""


def run_or_latest(given: str | None, parser: Parser, *, single: bool = False) -> str:
    """The run that is `given`, or else the latest, which is then named on standard error; of folds
    and repeats the folder of all of them, or a `single` one.

    Raises `ConfigError` where there is none, or several began in the same second.
    """
    if given is not None:
        return given
    from trueloop import ranks  # here, so that --help does not wait for torch

    path = ranks.on_main(lambda: _latest(single, f"write {parser.prog} RUN"), "the choice")
    if ranks.is_main():
        print(f"trueloop: {path} is the latest run", file=sys.stderr)
    return str(path)


def _latest(single: bool, remedy: str) -> Path:
    from trueloop.run import Run
    from trueloop.run.folder import runs_below

    began: dict[Path, str] = {}
    for path in runs_below(RUNS):
        try:
            started = str(Run(path).environment.get("started", ""))
        except RunError:  # damaged
            continue
        is_fold = (path.parent / "folds.json").is_file()
        place = path.parent if is_fold and not single else path
        began[place] = max(started, began.get(place, ""))
    if not began:
        raise ConfigError(f"RUN is missing, and {RUNS}/ has no run: {remedy}")
    last = max(began.values())
    latest = sorted(str(place) for place in began if began[place] == last)
    if len(latest) > 1:
        named = " and ".join(latest[:3])
        raise ConfigError(f"RUN is missing, and {named} began in the same second: {remedy}")
    return Path(latest[0])
