"""Correct programs with a part that nobody can read: does `check` stay silent?

    python benchmarks/doctor_unknown_code.py [--folder FOLDER] [--jobs N] [--show]

In each program of tests/doctor/corpus, in turn, one function or class at the top is imported from a
package that is not there instead, or the function of one assigned call is of such a package, with
the arguments that it had. Code that cannot be read may do what is right, so an error or a warning
that the program did not have before is a false alarm. A few are none: a function that works on
globals of its program cannot be of a different package, and what is left without it is wrong.

Prints how many changes raise an alarm, by rule, and with --show each of them; without --folder,
writes benchmarks/results/doctor_unknown_code.json. About ten minutes on two cores.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import NamedTuple

from common import save_results, table
from corpus_programs import CORPUS, options, programs_in

from trueloop.doctor.static import check_text

PACKAGE = "unknown_package"


class Alarm(NamedTuple):
    """An error or a warning that a change has brought."""

    program: str
    change: str
    """`definition` or `call`."""
    name: str
    line: int
    code: str


class Variant(NamedTuple):
    change: str
    name: str
    text: str


def definitions(text: str) -> Iterator[Variant]:
    """The program without one of its functions or classes, which it imports instead."""
    lines = text.split("\n")
    for node in ast.parse(text).body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            first = min(each.lineno for each in (node, *node.decorator_list))
            kept = [*lines]
            kept[first - 1 : node.end_lineno] = [""] * ((node.end_lineno or first) - first + 1)
            kept[first - 1] = f"from {PACKAGE} import {node.name}"
            yield Variant("definition", node.name, "\n".join(kept))


def calls(text: str) -> Iterator[Variant]:
    """The program with a different function in one `name = call(...)` of one line."""
    lines = text.split("\n")
    for node in ast.walk(ast.parse(text)):
        if not (isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)):
            continue
        if len(node.targets) > 1 or node.lineno != node.end_lineno:
            continue
        call = node.value
        line = lines[node.lineno - 1].encode()
        same = ast.unparse(ast.Call(ast.Name("made_elsewhere"), call.args, call.keywords))
        changed = line[: call.col_offset] + same.encode() + line[call.end_col_offset :]
        kept = [*lines]
        kept[node.lineno - 1] = changed.decode()
        imported = f"import torch; from {PACKAGE} import made_elsewhere\n"
        text_after = "\n".join(kept).replace("import torch\n", imported, 1)
        if imported in text_after:
            yield Variant("call", ast.unparse(node.targets[0]), text_after)


def alarms_in(text: str) -> set[tuple[int, str]]:
    found = check_text(text, "/project/program.py").findings
    return {(each.place.line, each.code) for each in found if each.severity != "advice"}


def try_program(path: Path, folder: Path) -> tuple[Counter[str], list[Alarm]]:
    """How many changes of each kind were made, and the alarms."""
    text = path.read_text("utf-8")
    before = alarms_in(text)
    made: Counter[str] = Counter()
    alarms: list[Alarm] = []
    for change, name, changed in (*definitions(text), *calls(text)):
        made[change] += 1
        new = sorted(alarms_in(changed) - before)
        # What was found before may be found at a different line.
        alarms += [
            Alarm(str(path.relative_to(folder)), change, name, line, code)
            for line, code in new
            if code not in {known for _, known in before}
        ]
    return made, alarms


def main(words: list[str] | None = None) -> int:
    parser = options(__doc__)
    given = parser.parse_args(words)
    folder = given.folder or CORPUS
    programs = programs_in(folder)
    made: Counter[str] = Counter()
    alarms: list[Alarm] = []
    with ProcessPoolExecutor(given.jobs) as pool:
        for counts, found in pool.map(partial(try_program, folder=folder), programs, chunksize=8):
            made += counts
            alarms += found
    changes = {(each.program, each.change, each.name) for each in alarms}
    by_change = Counter(change for _, change, _ in changes)
    rows = [
        {"changed": kind, "changes": count, "with an alarm": by_change[kind]}
        for kind, count in sorted(made.items())
    ]
    print(table(rows))
    by_rule = dict(Counter(each.code for each in alarms).most_common())
    print("\nalarms by rule: " + ", ".join(f"{code} {count}" for code, count in by_rule.items()))
    if given.show:
        for each in alarms:
            print(f"  {each.program}: {each.change} `{each.name}`: line {each.line} {each.code}")
    if given.folder is None:
        results = {"programs": len(programs), "changes": rows, "alarms by rule": by_rule}
        listed = [each._asdict() for each in alarms]
        print(save_results("doctor_unknown_code", {**results, "alarms": listed}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
