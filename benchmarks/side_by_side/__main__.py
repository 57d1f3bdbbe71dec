"""`python -m side_by_side`: measures, prints tables, and writes results, a picture and a page."""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.metadata
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import save_results

import side_by_side
from side_by_side import report
from side_by_side.contender import Contender
from side_by_side.workload import LeftOutError, Settings, Turn, Workload

WORKLOADS = ("spiral", "mnist", "table", "gpt", "validation", "startup", "own_cost")
PACKAGES = (
    "torch", "lightning", "accelerate", "pytorch-ignite", "skorch", "keras", "transformers",
)  # fmt: skip
FEW = 2
"""Rounds of a contender that takes long."""


def load(name: str) -> Workload:
    found: Workload = importlib.import_module(f"side_by_side.{name}").WORKLOAD
    return found


def versions() -> dict[str, str]:
    """Of the packages that are installed."""
    found = {}
    for name in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


class InParent:
    """A contender that only starts processes, and needs none of its own."""

    def __init__(self, turn: Turn) -> None:
        self.ask = lambda what: turn() if what == "turn" else {}

    def close(self) -> None:
        """Nothing to end."""


class Measurement:
    """One workload: its contenders, their rounds, and which were left out."""

    def __init__(self, name: str, settings: Settings, rounds: int) -> None:
        self.name, self.workload = name, load(name)
        cores = os.cpu_count() or 1
        self.settings = Settings(**{**vars(settings), "threads": self.workload.threads or cores})
        self.count = rounds
        self.rounds: dict[str, list[dict[str, float]]] = {}
        self.left_out: dict[str, str] = {}
        self.failed = False
        self._here: dict[str, Any] = {}

    def run(self) -> None:
        try:
            self._start()
            for turn in range(self.count + self.workload.warms_up):
                counts = turn >= self.workload.warms_up
                # Who comes after whom changes from round to round.
                names = list(self._here)
                first = turn % max(len(names), 1)
                for name in names[first:] + names[:first]:
                    if name in self.workload.few and turn >= FEW:
                        continue
                    found = self._ask(name, "turn")
                    if found is not None and counts:
                        self.rounds.setdefault(name, []).append(found)
            for name in list(self._here):
                found = self._ask(name, "end")
                for one in self.rounds.get(name, ()) if found else ():
                    one.update(found or {})
        finally:
            for one in self._here.values():
                one.close()

    def _start(self) -> None:
        if self.workload.in_parent:
            for name, make in self.workload.contenders.items():
                self._here[name] = InParent(make(self.settings))
            return
        # The processes start side by side; nothing is measured yet.
        for name in self.workload.contenders:
            self._here[name] = Contender(self.name, name, self.settings)
        for name in list(self._here):
            self._ask(name, "")

    def _ask(self, name: str, what: str) -> dict[str, float] | None:
        """What a contender answers; None if it cannot take part, and then it is left out."""
        one = self._here[name]
        try:
            found: dict[str, float] = one.ask(what) if what else one.answer()
            return found
        except LeftOutError as error:
            self._leave_out(name, str(error))
        except RuntimeError as error:
            self.failed = True
            print(error, file=sys.stderr)
            self._leave_out(name, "it failed")
        return None

    def _leave_out(self, name: str, why: str) -> None:
        print(f"{name} is left out: {why}", flush=True)
        self.left_out[name] = why
        self.rounds.pop(name, None)
        self._here.pop(name).close()

    def results(self) -> dict[str, Any]:
        """What is saved: rows with medians, goals with what was measured, and every turn."""
        workload = self.workload
        rows = []
        for name, turns in self.rounds.items():
            row: dict[str, Any] = {"contender": name}
            for figure in workload.figures:
                values = [turn[figure.name] for turn in turns if figure.name in turn]
                row[figure.title] = round(statistics.median(values), figure.digits)
            row["ratio"] = self._ratio(name) if workload.compared else None
            rows.append(row)
        goals = []
        for goal in workload.goals:
            value = goal.measured(self.rounds)
            if value is not None:
                met = goal.is_met(value)
                shown = {"goal": goal.text, "measured": round(value, 3), "wanted": goal.limit()}
                goals.append({**shown, "met": met})
        return {
            "title": workload.title,
            "what": (sys.modules[f"side_by_side.{self.name}"].__doc__ or "").strip(),
            "figures": [figure.title for figure in workload.figures],
            "lower_is_better": workload.figures[0].lower_is_better,
            "beside": workload.beside,
            "compared": workload.compared,
            "versions": versions(),
            "rows": rows,
            "goals": goals,
            "left_out": self.left_out,
            "rounds": self.count,
            "threads": self.settings.threads,
            "turns": self.rounds,
        }

    def _ratio(self, name: str) -> float | None:
        """How many times as fast as the contender that all are compared with."""
        base = self.rounds.get(self.workload.beside)
        if base is None:
            return None
        figure = self.workload.figures[0]
        pairs = [
            (one[figure.name], other[figure.name])
            for one, other in zip(self.rounds[name], base, strict=False)
        ]
        values = [b / a if figure.lower_is_better else a / b for a, b in pairs]
        return round(statistics.median(values), 3)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="make bench", description=side_by_side.__doc__.splitlines()[0]
    )
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="everything once, in small")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--docs", action="store_true", help="only write the page and the picture")
    given = parser.parse_args()
    for name in given.workloads:
        if name not in WORKLOADS:
            parser.error(f"unknown workload {name!r}: write one of {', '.join(WORKLOADS)}")
    failed = False
    scratch = Path(tempfile.gettempdir()) / "trueloop-bench"
    scratch.mkdir(exist_ok=True)
    settings = Settings(0, given.quick, given.data.resolve(), scratch)
    began = time.perf_counter()
    for name in () if given.docs else given.workloads or WORKLOADS:
        measurement = Measurement(name, settings, 1 if given.quick else given.rounds)
        started = time.perf_counter()
        measurement.run()
        results = measurement.results() | {"seconds": round(time.perf_counter() - started, 1)}
        print(report.as_text(results), flush=True)
        failed |= measurement.failed
        if not given.quick:
            print(save_results(f"side_by_side_{name}", results), flush=True)
    print(f"{time.perf_counter() - began:.0f} s")
    if not given.quick:
        report.write()
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
