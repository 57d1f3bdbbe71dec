"""Classes that nothing else in their project names: nobody runs their code.

A name counts wherever the project has it: in code, in strings, in a configuration that chooses
classes, in the README. An import by itself does not count, unless it is in the `__init__.py` of a
package, which makes its names public. Names within unused classes do not count either. Where a
project looks up classes without their names, all of them count as used.
"""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from trueloop.doctor.model.nodes import walk
from trueloop.doctor.static.inputs.discovery import files_below
from trueloop.doctor.static.inputs.documents import UnreadableError, decode, read_bytes

_MARKERS = (".git", "pyproject.toml", "setup.py", "setup.cfg")
_TEXTS = tuple(
    ".py .ipynb .md .rst .txt .yaml .yml .json .toml .cfg .ini .conf .gin .sh .bash .slurm".split()
)
_MOST_FILES = 5_000
_MOST_BYTES = 100_000_000
"""Of a project with more of them, its data perhaps, all classes count as used."""
_LARGEST = 300_000
"""Bytes of a file that is not Python: beyond it is data."""
_LOOKS_UP = re.compile(
    rb"\bgetmembers\(|__subclasses__\(|__init_subclass__|\bglobals\(\)\s*(\[|\.get\b)"
)
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass
class _NamesOfFile:
    """The names that a Python file uses."""

    anywhere: set[str] = field(default_factory=set)
    by_class: dict[str, set[str]] = field(default_factory=dict)
    """Those within each of its classes that no decorator registers."""


class UnusedClasses:
    """The unused classes of the projects that files are in. `folders`: those that were given to
    `check`; the project of a file is the widest of these and of the nearest folder with a marker.
    Each file is read once."""

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._folders = [os.path.join(os.path.abspath(each), "") for each in folders]
        self._projects: dict[str, _Project] = {}

    def name_of(self, path: str, function: str) -> str:
        """The class around a `function` of the file at the absolute `path`, if nothing uses it."""
        name = function.partition(".")[0]
        root = self._root(path)
        if not name or not root or not path.endswith(".py"):
            return ""
        project = self._projects.setdefault(root, _Project(root))
        is_class = name in project.names(path).by_class
        return name if is_class and not project.uses(name) else ""

    def read_again(self, path: str) -> None:
        """The file at the absolute `path` has a new text."""
        for project in self._projects.values():
            project.read_again(path)

    def _root(self, path: str) -> str:
        """The folder of a file's project; empty if there is none."""
        given = [each for each in self._folders if path.startswith(each)]
        own = (str(each) for each in Path(path).parents if _is_marked(each))
        return min([*given, *[os.path.join(each, "") for each in own][:1]], key=len, default="")


def _is_marked(folder: Path) -> bool:
    return any((folder / each).exists() for each in _MARKERS)


class _Project:
    def __init__(self, root: str) -> None:
        self._root = root
        self._names: dict[str, _NamesOfFile] = {}
        self._used: dict[str, bool] = {}
        """Classes that were asked for, each of which may have many findings."""

    @cached_property
    def _texts(self) -> dict[str, bytes] | None:
        """By path; None if there are too many, or if classes are not chosen by their names."""
        found: dict[str, bytes] = {}
        size = 0
        for count, path in enumerate(files_below(self._root, _TEXTS)):
            if count == _MOST_FILES or size > _MOST_BYTES:
                return None
            try:
                data = read_bytes(path)
            except UnreadableError:
                continue
            if path.endswith(".py") and _LOOKS_UP.search(data):
                return None
            if path.endswith((".py", ".ipynb")) or len(data) <= _LARGEST:
                found[path] = data
                size += len(data)
        return found

    def read_again(self, path: str) -> None:
        self._names.pop(path, None)
        self._used.clear()
        if self._texts is not None and self._texts.pop(path, None) is not None:
            with suppress(UnreadableError):
                self._texts[path] = read_bytes(path)

    def names(self, path: str) -> _NamesOfFile:
        """Those of a Python file."""
        found = self._names.get(path)
        if found is None:
            found = self._names[path] = _names_of(path)
        return found

    def uses(self, name: str) -> bool:
        """Somebody may run what the class of this name does."""
        if name not in self._used:
            self._used[name] = self._texts is None or self._is_reached(name)
        return self._used[name]

    def _is_reached(self, name: str) -> bool:
        waiting, seen = [name], {name}
        while waiting:
            users = self._users(waiting.pop())
            for user in users:
                if user is None:
                    return True
                if user not in seen:
                    seen.add(user)
                    waiting.append(user)
        return False

    def _users(self, name: str) -> Iterator[str | None]:
        """The classes that name it; None for what is in none."""
        word = re.compile(rf"\b{re.escape(name)}\b".encode())
        for path, data in (self._texts or {}).items():
            if word.search(data) is None:
                continue
            if not path.endswith(".py"):
                yield None
                continue
            names = self.names(path)
            if name in names.anywhere:
                yield None
            yield from (each for each, inside in names.by_class.items() if name in inside)


def _names_of(path: str) -> _NamesOfFile:
    try:
        text = decode(read_bytes(path))
        tree = ast.parse(text)
    except (UnreadableError, SyntaxError, ValueError, RecursionError):
        return _NamesOfFile()  # it cannot run
    found = _NamesOfFile()
    is_public = os.path.basename(path) == "__init__.py"
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.anywhere |= {each.name for each in node.names if is_public or each.asname}
        elif isinstance(node, ast.ClassDef) and not (node.decorator_list or _is_test(node)):
            found.by_class.setdefault(node.name, set()).update(_names_in(node))
        elif not _lists_exports(node):
            found.anywhere |= _names_in(node)
    return found


def _names_in(node: ast.AST) -> set[str]:
    found: set[str] = set()
    for each in walk(node):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute):
            found.add(each.attr)
        elif isinstance(each, ast.alias) and each.asname:
            found.add(each.name)
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.update(_WORD.findall(each.value))
    return found


def _is_test(node: ast.ClassDef) -> bool:
    """A runner of tests finds it by its name or its base."""
    return node.name.startswith("Test") or any("TestCase" in _names_in(each) for each in node.bases)


def _lists_exports(node: ast.stmt) -> bool:
    targets = node.targets if isinstance(node, ast.Assign) else []
    return any(isinstance(each, ast.Name) and each.id == "__all__" for each in targets)
