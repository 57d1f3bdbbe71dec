"""Run the programs, count their lines, and write the tables of docs/comparison.md.

    PYTHONPATH=benchmarks python -m five_programs             runs them all: needs `.[peers]`
    PYTHONPATH=benchmarks python -m five_programs --tables    only the tables, of the last results

All get the same batches: `same_batches` lets torch's loaders shuffle as a `Feed` does, and Trainer
does not seed again. Each runs in a process of its own, on one thread.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from common import RESULTS, save_results

from five_programs.lines import lines_of_code
from five_programs.running import SCORES, ran

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "comparison.md"
PROGRAMS = {
    "classifier": "classifier",
    "gan": "GAN",
    "language_model": "language model",
    "fine_tuning": "fine-tuning",
    "table": "table",
}
LIBRARIES = {
    "trueloop": "Trueloop",
    "trueloop_fit": "Trueloop, `fit`",
    "torch": "plain torch",
    "lightning": "Lightning",
    "transformers": "Trainer",
}
PACKAGES = ("torch", "lightning", "transformers", "accelerate")
BEGIN, END = "<!-- written by benchmarks/five_programs -->", "<!-- end of it -->"


def path_of(program: str, library: str) -> Path:
    return HERE / program / f"with_{library}.py"


def measured(program: str) -> dict[str, Any]:
    """All libraries' lines and results of one program."""
    rows: dict[str, Any] = {}
    weights: dict[str, Any] = {}
    for library in ("torch", *LIBRARIES):
        if library in rows or not path_of(program, library).exists():
            continue
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            done = process.submit(ran, path_of(program, library), library).result(timeout=120)
        weights = weights or done.weights
        apart = max(float(abs(weights[key] - done.weights[key]).max()) for key in weights)
        lines = lines_of_code(path_of(program, library))
        rows[library] = {"lines": lines, **done.scores, "steps": done.steps, "apart": apart}
        print(program, library, rows[library], flush=True)
    return rows


def tables(programs: dict[str, Any], versions: dict[str, str]) -> str:
    """The two tables of the page."""
    named = dict(LIBRARIES)
    named["lightning"] += f" {versions['lightning']}"
    named["transformers"] += f" {versions['transformers']}"
    head = ["lines of code", *named.values()]
    lines = [[PROGRAMS[name], *_lines(rows)] for name, rows in programs.items()]
    scores = [[PROGRAMS[name], *_results(rows)] for name, rows in programs.items()]
    return f"{_table([head, *lines])}\n\n{_table([['result', *named.values()], *scores])}"


def _lines(rows: dict[str, Any]) -> list[str]:
    fewest = min(row["lines"] for row in rows.values())
    counts = [rows[name]["lines"] if name in rows else None for name in LIBRARIES]
    return ["–" if n is None else f"**{n}**" if n == fewest else str(n) for n in counts]


def _results(rows: dict[str, Any]) -> list[str]:
    cells = []
    for library in LIBRARIES:
        row = rows.get(library)
        name = next(name for name in SCORES if name in rows["torch"])
        apart = "" if not row else "bitwise" if row["apart"] == 0 else f"{row['apart']:.0e} apart"
        cells.append(f"{name} {row[name]:.4g}, {apart}" if row else "–")
    return cells


def _table(rows: list[list[str]]) -> str:
    rows.insert(1, ["---"] + ["---:"] * (len(rows[0]) - 1))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def page_with(text: str, written: str) -> str:
    before, _, rest = text.partition(BEGIN)
    after = rest.partition(END)[2]
    return f"{before}{BEGIN}\n\n{written}\n\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--tables", action="store_true", help="of the last results, run nothing")
    if not parser.parse_args().tables:
        versions = {name: importlib.metadata.version(name) for name in PACKAGES}
        programs = {name: measured(name) for name in PROGRAMS}
        save_results("five_programs", {"versions": versions, "programs": programs})
    results = json.loads((RESULTS / "five_programs.json").read_text("utf-8"))
    written = tables(results["programs"], results["versions"])
    PAGE.write_text(page_with(PAGE.read_text("utf-8"), written), "utf-8")
    print(written)
    return 0


if __name__ == "__main__":
    sys.exit(main())
