"""Reading Python source: an abstract machine that goes through the runs a program can make.

Nothing of the user's code is run. `machine` has the state of one run, `statements`, `expressions`,
`calling` and `loops` move it on over values that are known only in part (`values`), `library` knows
what torch and its neighbours do, `project` follows imports between the user's own files, and `runs`
decides which runs a file is worth. What happens is handed to the rules as events.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from trueloop.doctor.model.findings import Finding
from trueloop.doctor.static.inputs.skipped import Gaps
from trueloop.doctor.static.interpreter.step_budget import STEPS_A_FILE
from trueloop.doctor.static.interpreter.syntax import FRAMES, call_in_one_chunk, parse, room

if TYPE_CHECKING:
    from trueloop.doctor.model.events import Event
    from trueloop.doctor.rules.base import Rule
    from trueloop.doctor.static.interpreter.project import Project
    from trueloop.doctor.static.interpreter.values import Module

_RELEVANT = re.compile(
    r"\btorch|lightning|accelerate|\bfabric\b|\bignite\b|backward\(|zero_grad|optimizer|DataLoader"
    r"|Trainer\)"
)
"""A file that is read mentions one of these, or trains by what it imports."""


@dataclass(slots=True)
class Report:
    """The result of reading one file."""

    findings: list[Finding] = field(default_factory=list)
    followed: dict[str, str] = field(default_factory=dict)
    """Other files of the project that were read for it, each with the digest of what was read; an
    empty one for a file that was looked for and was not there."""
    gaps: Gaps = field(default_factory=Gaps)
    steps: int = 0
    """The cost of reading; see `counting`."""
    settled: set[tuple[str, str, int]] = field(default_factory=set)
    """Code, path, line: there the program shows that nothing is wrong; see `Rule.settle`."""


def check_text(
    text: str,
    path: str,
    *,
    above: int = 0,
    project: Project | None = None,
    rules: list[type[Rule]] | None = None,
    steps: int = STEPS_A_FILE,
    listen: Callable[[Event], None] | None = None,
    strict: bool = False,
) -> Report:
    """Read a file's text and report its faults, which depend only on the text and the files that it
    imports.

    `above`: how many lines of the file precede the text, which is a part of it. `rules`: those to
    apply, by default all that are seen in source. `steps`: how many it may take, by default as many
    as a file has. `listen` is called with every event of every run. Raises `SyntaxError` (or
    `ValueError`, for null bytes) for text that is not Python, `RecursionError` or `MemoryError` for
    what is nested too deeply to be parsed.
    """
    cost = len(text) >> 8
    silent = not _RELEVANT.search(text)
    if silent and not _starts_something(parse(text)):
        return Report(steps=cost >> 3)
    from trueloop.doctor.rules.loading import rules_for
    from trueloop.doctor.static import stubs
    from trueloop.doctor.static.inputs.columns import in_characters
    from trueloop.doctor.static.interpreter.file_analysis import FileAnalysis, read_module
    from trueloop.doctor.static.interpreter.programs import trains_by_import
    from trueloop.doctor.static.interpreter.project import project_at

    stubs.register()
    owner = project or project_at(root_of(path))
    module = _module(text, path, above, owner)
    owner.begin()
    if silent and not trains_by_import(owner, module):
        return Report(followed=dict(owner.followed), steps=cost >> 3)
    reading = FileAnalysis(
        owner,
        module,
        rules_for("S") if rules is None else rules,
        steps - cost,
        listen=listen,
        strict=strict,
    )
    with room(FRAMES):
        call_in_one_chunk(lambda: read_module(reading))
    findings = sorted(reading.findings.values(), key=lambda found: (found.place, found.code))
    reading.gaps.not_followed |= owner.not_followed
    return Report(
        in_characters(findings, path, text, above),
        dict(owner.followed),
        reading.gaps,
        steps - reading.left,
        {each for each in reading.settled if each[1] != path},
    )


def _module(text: str, path: str, above: int, owner: Project) -> Module:
    """A text, parsed: once, where a file read before imports it."""
    from trueloop.doctor.static.interpreter.survey import FileSummary
    from trueloop.doctor.static.interpreter.values import Module

    data = text.encode("utf-8", "replace")
    known = None if above else owner.parsed(path, data)
    tree = known.tree if known is not None else parse(text)
    if above:
        ast.increment_lineno(tree, above)
    name = _dotted(path)
    package = name if os.path.basename(path) == "__init__.py" else name.rpartition(".")[0]
    survey = known.survey if known is not None else FileSummary(tree, text)
    module = Module(path, name, tree, survey, package)
    if known is None and not above:
        owner.remember(path, data, module)
    return module


def _starts_something(tree: ast.Module) -> bool:
    """A file does more than define: `main()`, or anything under `if __name__ == "__main__"`."""
    inside = (part for each in tree.body if isinstance(each, ast.If) for part in each.body)
    ran: list[ast.stmt] = [each for each in tree.body if isinstance(each, ast.Expr)]
    ran += [each for each in inside if isinstance(each, ast.Expr | ast.Assign)]
    return any(isinstance(getattr(each, "value", None), ast.Call) for each in ran)


MARKS = (".git", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt")
"""The files that mark the top of a project."""
MANY = 200
"""Entries of a folder that are looked at for packages."""


def root_of(path: str) -> str:
    """The folder that imports of a file start from at the latest: the top of its project, or else
    the folder above its package, or one further up where that has packages or scripts."""
    folder = os.path.dirname(os.path.abspath(path))
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder = os.path.dirname(folder)
    above = folder
    for _ in range(4):
        if any(os.path.exists(os.path.join(above, mark)) for mark in MARKS):
            return above
        above = os.path.dirname(above)
    parent = os.path.dirname(folder)
    return parent if _has_code(parent) else folder


@lru_cache(maxsize=256)
def _has_code(folder: str) -> bool:
    """A folder contains packages, or scripts: what is beside them is imported from there."""
    try:
        with os.scandir(folder) as entries:
            found = list(islice(entries, MANY))
    except OSError:
        return False
    if any(each.name.endswith(".py") and each.is_file() for each in found):
        return True
    return any(
        each.is_dir() and os.path.isfile(os.path.join(each.path, "__init__.py")) for each in found
    )


def _dotted(path: str) -> str:
    """The dotted name of a file, through the packages that contain it."""
    folder, file = os.path.split(os.path.abspath(path))
    parts = [] if file == "__init__.py" else [file.removesuffix(".py")]
    while os.path.isfile(os.path.join(folder, "__init__.py")) and folder != os.path.dirname(folder):
        folder, name = os.path.split(folder)
        parts.insert(0, name)
    return ".".join(parts)
