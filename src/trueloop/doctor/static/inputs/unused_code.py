"""Classes and files that nothing else in their project names: nobody runs their code.

A name counts wherever the project has it: in code, in strings, in a configuration that chooses
classes, in the README. An import by itself does not count for a class, unless it is in the
`__init__.py` of a package, which makes its names public. Names within unused classes do not count
either. Where a project looks up classes without their names, all of them count as used.

A file that only defines something is used if a different file imports it or names it; likewise all
of them are where a project imports files without their names.

Where no file of a project does more than define something, nothing shows what its code is for: all
of it counts as used.
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
from trueloop.doctor.static.interpreter.syntax import written

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
_IMPORTS_WITHOUT_NAME = re.compile(
    rb"\bimportlib\b|__import__\(|\bpkgutil\b|\brun_path\(|\brun_module\(|glob\([^)]*\.py\b"
)
_RUN_BY_OTHERS = re.compile(r"(__init__|__main__|conftest|setup|hubconf|test_\w*|\w*_test)\.py$")
_WORD = re.compile(r"[^\W\d]\w*")


@dataclass
class _NamesOfFile:
    """The names that a Python file uses."""

    anywhere: set[str] = field(default_factory=set)
    by_class: dict[str, set[str]] = field(default_factory=dict)
    """Those within each of its classes that no decorator registers."""
    files: set[str] = field(default_factory=set)
    """Those of its imports and in its strings: of files, perhaps."""
    only_defines: bool = False
    """At its top level it runs nothing."""


class UnusedCode:
    """The unused classes and files of the projects that files are in. `folders`: those that were
    given to `check`; the project of a file is the widest of these and of the nearest folder with a
    marker. Each file is read once."""

    def __init__(self, folders: Sequence[str] = ()) -> None:
        self._folders = [os.path.join(os.path.abspath(each), "") for each in folders]
        self._projects: dict[str, _Project] = {}

    def name_of(self, path: str, function: str) -> str:
        """The class around a `function` of the file at the absolute `path`, or else the file, if
        nothing uses it."""
        root = self._root(path)
        if not root or not path.endswith(".py"):
            return ""
        project = self._projects.setdefault(root, _Project(root))
        name = function.partition(".")[0]
        if name in project.names(path).by_class and not project.uses_class(path, name):
            return name
        return "" if project.uses_file(path) else os.path.basename(path)

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
        self._used_classes: dict[tuple[str, str], bool] = {}
        """Classes that were asked for, each of which may have many findings."""
        self._used_files: dict[str, bool] = {}
        """Files that were asked for."""

    def uses_file(self, path: str) -> bool:
        """Somebody may import or run the file."""
        if path not in self._used_files:
            self._used_files[path] = not self.names(path).only_defines or self._is_named(path)
        return self._used_files[path]

    def _is_named(self, path: str) -> bool:
        stem = os.path.basename(path).removesuffix(".py")
        if not self._has_program or self._imports_without_name or _RUN_BY_OTHERS.search(path):
            return True
        word = re.compile(rf"\b{re.escape(stem)}\b".encode())
        others = ((each, data) for each, data in (self._texts or {}).items() if each != path)
        naming = (each for each, data in others if word.search(data) is not None)
        return any(not each.endswith(".py") or stem in self.names(each).files for each in naming)

    @cached_property
    def _has_program(self) -> bool:
        """Some file of the project, all of which are known, runs something."""
        code = [path for path in self._texts or {} if path.endswith(".py")]
        return any(not self.names(path).only_defines for path in code)

    @cached_property
    def _imports_without_name(self) -> bool:
        return any(
            path.endswith(".py") and _IMPORTS_WITHOUT_NAME.search(data)
            for path, data in (self._texts or {}).items()
        )

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
        self._used_classes.clear()
        self._used_files.clear()
        for known in ("_has_program", "_imports_without_name"):
            self.__dict__.pop(known, None)
        if self._texts is not None and self._texts.pop(path, None) is not None:
            with suppress(UnreadableError):
                self._texts[path] = read_bytes(path)

    def names(self, path: str) -> _NamesOfFile:
        """Those of a Python file."""
        found = self._names.get(path)
        if found is None:
            found = self._names[path] = _names_of(path)
        return found

    def uses_class(self, path: str, name: str) -> bool:
        """Somebody may run what the class of this name in a file does."""
        key = path, name
        if key not in self._used_classes:
            self._used_classes[key] = not self._has_program or self._is_reached(key)
        return self._used_classes[key]

    def _is_reached(self, asked: tuple[str, str]) -> bool:
        waiting, seen = [asked], {asked}
        while waiting:
            for user in self._users(*waiting.pop()):
                if user is None:
                    return True
                if user not in seen:
                    seen.add(user)
                    waiting.append(user)
        return False

    def _users(self, own: str, name: str) -> Iterator[tuple[str, str] | None]:
        """The classes, each with its file, that name the one in the file `own`; None for what is in
        no class. A file with a class of that name means its own."""
        word = re.compile(rf"\b{re.escape(name)}\b".encode())
        for path, data in (self._texts or {}).items():
            if word.search(data) is None:
                continue
            if not path.endswith(".py"):
                yield None
                continue
            names = self.names(path)
            if path != own and name in names.by_class:
                continue
            if name in names.anywhere:
                yield None
            for each, inside in names.by_class.items():
                if name in inside:
                    yield path, each


def _names_of(path: str) -> _NamesOfFile:
    try:
        text = decode(read_bytes(path))
        tree = ast.parse(text)
    except (UnreadableError, SyntaxError, ValueError, RecursionError):
        return _NamesOfFile(only_defines=True)  # it cannot run
    own = _own_names(tree)
    defines = all(_defines(each, own) for each in tree.body)
    found = _NamesOfFile(files=_files_named_in(tree), only_defines=defines)
    layers = _names_of_torch_nn(tree)
    is_public = os.path.basename(path) == "__init__.py"
    for node in tree.body:
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.anywhere |= {each.name for each in node.names if is_public or each.asname}
        elif isinstance(node, ast.ClassDef) and not (node.decorator_list or _is_test(node)):
            found.by_class.setdefault(node.name, set()).update(_names_in(node, layers))
        elif not _lists_exports(node):
            found.anywhere |= _names_in(node, layers)
    return found


def _own_names(tree: ast.Module) -> set[str]:
    """Functions and variables of a file, without its constants."""
    assigned = {
        each.id
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        for each in walk(target)
        if isinstance(each, ast.Name) and not each.id.isupper()
    }
    return assigned | {each.name for each in tree.body if isinstance(each, ast.FunctionDef)}


def _defines(node: ast.stmt, own: set[str]) -> bool:
    """A statement at the top of a file that runs nothing: not `history = fit(net, loader)`, whose
    call has a function or a variable of the file."""
    if isinstance(node, (ast.If, ast.Try)):
        is_program = isinstance(node, ast.If) and "__name__" in _names_in(node.test)
        bodies = (node.body, node.orelse, *(each.body for each in getattr(node, "handlers", ())))
        return not is_program and all(_defines(each, own) for body in bodies for each in body)
    if isinstance(node, ast.Expr):
        return isinstance(node.value, ast.Constant)
    if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
        calls = (each for each in walk(node.value) if isinstance(each, ast.Call))
        names = (each for call in calls for each in walk(call) if isinstance(each, ast.Name))
        return own.isdisjoint(each.id for each in names)
    return isinstance(node, _DEFINITIONS)


_DEFINITIONS = (
    *(ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom),
    *(ast.Assign, ast.AnnAssign, ast.Pass, ast.Raise),
)


def _files_named_in(tree: ast.Module) -> set[str]:
    found: set[str] = set()
    for each in walk(tree):
        if isinstance(each, (ast.Import, ast.ImportFrom)):
            names = [getattr(each, "module", None) or "", *(name.name for name in each.names)]
            found.update(part for name in names for part in name.split("."))
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            found.update(_WORD.findall(each.value))
    return found


def _names_of_torch_nn(tree: ast.Module) -> frozenset[str]:
    """The names that a file gives to `torch.nn`."""
    imports = [each for each in tree.body if isinstance(each, (ast.Import, ast.ImportFrom))]
    dotted = (
        (f"{getattr(each, 'module', None) or ''}.{name.name}".strip("."), name.asname or name.name)
        for each in imports
        for name in each.names
    )
    return frozenset(own for whole, own in dotted if whole == "torch.nn")


def _names_in(node: ast.AST, layers: frozenset[str] = frozenset()) -> set[str]:
    """The names that code uses; `nn.LayerNorm` is none of a class of the project's."""
    found: set[str] = set()
    for each in walk(node):
        if isinstance(each, ast.Name):
            found.add(each.id)
        elif isinstance(each, ast.Attribute) and written(each.value) not in layers:
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
