"""The files of a project: finding what an import means, and reading each file once."""

from __future__ import annotations

import ast
import os
import sys
from functools import lru_cache

from trueloop.doctor.static.inputs.documents import digest
from trueloop.doctor.static.inputs.unsaved import unsaved
from trueloop.doctor.static.interpreter.canonical_names import canonical
from trueloop.doctor.static.interpreter.survey import FileSummary
from trueloop.doctor.static.interpreter.syntax import parse
from trueloop.doctor.static.interpreter.values import Imported, LibraryName, Module, Value
from trueloop.doctor.static.interpreter.ways_out import leaves
from trueloop.files import read_bytes

NEVER = frozenset(
    "torch numpy torchvision torchaudio transformers lightning pytorch_lightning accelerate timm"
    " sklearn pandas scipy matplotlib PIL cv2 tqdm wandb einops datasets tokenizers".split()
) | frozenset(sys.stdlib_module_names)
"""Libraries that are known by name; a file of the user's with that name comes first, if there is
one."""
LARGEST = 400_000
"""Bytes of a file that is followed through an import."""

MODULES = 300
"""Files of a project that are kept parsed."""


@lru_cache(maxsize=4)
def project_at(root: str) -> Project:
    """The project whose top is a folder; files read one after the other share what was parsed."""
    return Project([root])


class Project:
    """The user's files, as far as they were asked for."""

    def __init__(self, roots: list[str] | None = None) -> None:
        self.roots = [os.path.abspath(root) for root in roots or []]
        self._modules: dict[tuple[str, str], Module | None] = {}
        self._latest: dict[str, tuple[bytes, Module]] = {}
        """By their path, the text that was parsed last, and the module that it is."""
        self._found: dict[tuple[str, str], tuple[str | None, list[str]]] = {}
        self._asked: dict[tuple[str, str], str | None] = {}
        """Since the file began: path of the importing file, and module -> path of the module."""
        self._bound: dict[tuple[int, str, str], Value] = {}
        """Likewise: importing file by identity, module, and name -> what the import binds."""
        self._leaves: dict[int, tuple[list[ast.stmt], bool]] = {}
        self.names: set[str] = set()
        """Names that files import from other files of the project."""
        self.followed: dict[str, str] = {}
        """Files that were read, with the digest of what was read, and those that were looked for
        and would be read if they were there, with an empty one."""
        self.not_followed: dict[str, str] = {}
        """Files that are imported and could not be read, each with the reason."""
        self._digests: dict[str, str] = {}
        self._refused: dict[str, str] = {}

    def begin(self) -> None:
        """Before a file is read: forget what the last one asked for, and files if they are many."""
        self.followed.clear()
        self._asked.clear()
        self._bound.clear()
        self.not_followed.clear()
        self.names.clear()
        if max(len(self._modules), len(self._latest)) > MODULES:
            self._modules.clear()
            self._latest.clear()
            self._leaves.clear()

    def leaves(self, body: list[ast.stmt]) -> bool:
        """A branch ends in leaving the loop, the function or the program."""
        found = self._leaves.get(id(body))
        if found is None:
            found = self._leaves[id(body)] = (body, _leaves_only(body))
        return found[1]

    # ------------------------------------------------------------------ imports

    def absolute(self, name: str, level: int, module: Module) -> str:
        """The dotted name that a relative import means."""
        if not level:
            return name
        parts = module.package.split(".") if module.package else []
        kept = parts[: len(parts) - (level - 1)] if level > 1 else parts
        return ".".join([*kept, name] if name else kept) or name

    def find(self, dotted: str, near: Module) -> str | None:
        """The file of a module, looked for beside the importing file and above it."""
        if not dotted or near.path.startswith("<"):
            return None
        key = near.path, dotted
        if key in self._asked:
            return self._asked[key]
        folder = os.path.dirname(os.path.abspath(near.path))
        if (folder, dotted) not in self._found:
            self._found[folder, dotted] = self._search(folder, dotted)
        found, missed = self._found[folder, dotted]
        self.followed |= dict.fromkeys(missed, "")
        self._asked[key] = found
        return found

    def _search(self, folder: str, dotted: str) -> tuple[str | None, list[str]]:
        """The file of a module, and the places without one that come first."""
        relative = dotted.replace(".", os.sep)
        in_library = dotted.partition(".")[0] in NEVER
        missed: list[str] = []
        for _ in range(6):
            for candidate in (f"{relative}.py", os.path.join(relative, "__init__.py")):
                path = os.path.join(folder, candidate)
                if os.path.isfile(path) and not (in_library and "site-packages" in path):
                    return path, missed
                missed.append(path)
            if folder in self.roots or not self.roots or os.path.dirname(folder) == folder:
                break
            if not any(folder.startswith(root) for root in self.roots):
                break
            folder = os.path.dirname(folder)
        return None, missed

    def load(self, path: str, name: str) -> Module | None:
        """A file of the project, parsed; None if it cannot be."""
        if (path, name) not in self._modules:
            self._modules[path, name] = self._parse(path, name)
        self.followed[path] = self._digests.get(path, "")
        if self._modules[path, name] is None:
            self.not_followed[path] = self._refused[path]
        return self._modules[path, name]

    def parsed(self, path: str, data: bytes) -> Module | None:
        """A file as it was parsed before, for itself or for one that imports it, if its text is
        still the same."""
        known = self._latest.get(os.path.abspath(path))
        return known[1] if known is not None and known[0] == data else None

    def remember(self, path: str, data: bytes, module: Module) -> None:
        """A file was parsed: a name, the package and the shown path are an import's own."""
        self._latest[os.path.abspath(path)] = (data, module)

    def _parse(self, path: str, name: str) -> Module | None:
        try:
            data = unsaved(path)
            if data is None:
                data = read_bytes(path, LARGEST)
            self._digests[path] = digest(data)
            known = self.parsed(path, data)
            tree = known.tree if known is not None else parse(data)
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError) as error:
            self._refused[path] = _why(error)
            return None
        is_package = os.path.basename(path) == "__init__.py"
        package = name if is_package else name.rpartition(".")[0]
        shown = os.path.relpath(path) if not path.startswith("..") else path
        if known is not None:
            return Module(shown, name, tree, known.survey, package)
        survey = FileSummary(tree, data.decode("utf-8", "replace"))
        found = Module(shown, name, tree, survey, package)
        self.remember(path, data, found)
        return found

    def later(self, source: str, name: str, near: Module) -> Value:
        """The value that an import binds: a library's name, or a name of a different file of the
        project."""
        key = id(near), source, name
        found = self._bound.get(key)
        if found is None:
            found = self._bound[key] = self._binding(source, name, near)
        return found

    def _binding(self, source: str, name: str, near: Module) -> Value:
        if self.find(source, near) or (name and self.find(f"{source}.{name}".strip("."), near)):
            if name:
                self.names.add(name)
            return Imported(source, name, near)
        return LibraryName(canonical(f"{source}.{name}" if name else source))


def _why(error: Exception) -> str:
    """Why a file was not followed, in a few words."""
    if isinstance(error, OSError):
        return error.strerror or type(error).__name__
    if isinstance(error, (RecursionError, MemoryError)):
        return "it is nested too deeply"
    return "it does not parse"


def _leaves_only(body: list[ast.stmt]) -> bool:
    return bool(body) and leaves(body[-1])
