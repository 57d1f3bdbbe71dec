"""Programs in other words: does `check` report the same?

    python benchmarks/doctor_rewrites.py [--folder FOLDER] [--jobs N] [--only NAME] [--show]

Each program of tests/doctor/corpus is written in the ways of rewriting.py, which do not change what
it does: loops over generators, variables as attributes, functions as static methods, a `main`, a
trainer class, ... An error or a warning of a rule that reported nothing before is a false alarm; a
rule that reports nothing any more has missed the fault.

Prints both for each way, and with --show each program; without --folder and --only, writes
benchmarks/results/doctor_rewrites.json. About four minutes on two cores.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from common import save_results, table
from corpus_programs import CORPUS, options, programs_in
from rewriting import REWRITES, rewritten

from trueloop.doctor.static import check_text


class Outcome(NamedTuple):
    """What `check` reported about a program and about the same in other words."""

    program: str
    rewrite: str
    before: tuple[str, ...]
    """Codes of errors and warnings."""
    after: tuple[str, ...]

    @property
    def alarms(self) -> list[str]:
        return sorted(set(self.after) - set(self.before))

    @property
    def missed(self) -> list[str]:
        return sorted(set(self.before) - set(self.after))


def codes_in(text: str) -> tuple[str, ...]:
    found = check_text(text, "/project/program.py").findings
    return tuple(sorted({each.code for each in found if each.severity != "advice"}))


def try_program(path: Path, folder: Path, only: list[str] | None) -> list[Outcome]:
    # Comments, which may silence a rule, are gone in each of them.
    text = ast.unparse(ast.parse(path.read_text("utf-8")))
    before = codes_in(text)
    outcomes: list[Outcome] = []
    for rewrite in REWRITES:
        if only and rewrite.__name__ not in only:
            continue
        changed = rewritten(text, rewrite)
        if changed is not None:
            program = str(path.relative_to(folder))
            outcomes.append(Outcome(program, rewrite.__name__, before, codes_in(changed)))
    return outcomes


def rows_of(outcomes: list[Outcome]) -> list[dict[str, object]]:
    """A line for each way."""
    rows: list[dict[str, object]] = []
    for name in [each.__name__ for each in REWRITES]:
        chosen = [each for each in outcomes if each.rewrite == name]
        found = sum(len(each.before) for each in chosen)
        missed = sum(len(each.missed) for each in chosen)
        rows.append(
            {
                "written in other words": name,
                "programs": len(chosen),
                "with an alarm": sum(bool(each.alarms) for each in chosen),
                "faults": found,
                "found again": found - missed,
            }
        )
    return [row for row in rows if row["programs"]]


def main(words: list[str] | None = None) -> int:
    parser = options(__doc__)
    parser.add_argument("--only", action="append", metavar="NAME", help="one way, may be repeated")
    given = parser.parse_args(words)
    folder = given.folder or CORPUS
    programs = programs_in(folder)
    work = partial(try_program, folder=folder, only=given.only)
    with ProcessPoolExecutor(given.jobs) as pool:
        outcomes = [each for some in pool.map(work, programs, chunksize=4) for each in some]
    rows = rows_of(outcomes)
    print(table(rows))
    alarms = Counter(code for each in outcomes for code in each.alarms)
    missed = Counter(code for each in outcomes for code in each.missed)
    for what, counted in (("alarms", alarms), ("missed", missed)):
        listed = ", ".join(f"{code} {count}" for code, count in counted.most_common())
        print(f"\n{what} by rule: {listed or 'none'}")
    if given.show:
        for each in outcomes:
            told = [f"alarm {code}" for code in each.alarms]
            told += [f"missed {code}" for code in each.missed]
            if told:
                print(f"  {each.program}: {each.rewrite}: {', '.join(told)}")
    if given.folder is None and not given.only:
        results = {"programs": len(programs), "ways": rows}
        results |= {"alarms by rule": dict(alarms), "missed by rule": dict(missed)}
        print(save_results("doctor_rewrites", results))
    return 0


if __name__ == "__main__":
    sys.exit(main())
