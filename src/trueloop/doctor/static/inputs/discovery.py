"""The files that `trueloop check` reads: those given, and the useful ones below folders given."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from trueloop.errors import ConfigError, nearest_path

SUFFIXES = (".py", ".ipynb", ".md")
SKIPPED_FOLDERS = frozenset(
    "site-packages dist-packages node_modules __pycache__ __pypackages__ __MACOSX".split()
)
BUILD_FOLDERS = frozenset({"build", "dist"})
"""Left out, unless they are packages of the project's own, with an `__init__.py`."""


class FileProblem(NamedTuple):
    """A file, or a part of one, that could not be checked."""

    path: str
    line: int
    """From 1; 0 where no line is to blame."""
    message: str


class Unread(NamedTuple):
    """A file that was read, but not to its end."""

    path: str
    line: int
    """Where reading stopped first, from 1; 0 where that is in no line of the file."""
    function: str
    """The function that this line is in; empty at the top of a module."""
    message: str


@dataclass
class FileSelection:
    """The files to check, by absolute path, each with the name it is shown by."""

    shown: dict[str, str] = field(default_factory=dict)
    problems: list[FileProblem] = field(default_factory=list)


def find_files(
    paths: Iterable[str],
    *,
    is_excluded: Callable[[str], bool] = lambda path: False,
    force_exclude: bool = False,
) -> FileSelection:
    """The files at and below `paths`, in their order, those of a folder by name; each file once.

    A file that is given itself is taken whatever its name; below a folder, Python files, notebooks
    and Markdown are, but for hidden folders, virtual environments, installed packages and build
    products. Links to folders are not followed, which also ends every circle of them.
    `is_excluded` is asked with absolute paths; files given themselves pass it unless
    `force_exclude`. Raises `ConfigError` for a path that does not exist.
    """
    wanted = FileSelection()
    seen: set[str] = set()
    for path in paths:
        if not path or "\0" in path:
            raise ConfigError(f"{path!r} is not a path: write the name of a file or folder")
        root = os.path.normpath(os.path.expanduser(path))
        if not os.path.lexists(root):
            raise ConfigError(
                f"no such file or folder: {path}: {nearest_path(Path(path), 'check the path')}"
            )
        if os.path.isdir(root):
            found = _below(root, is_excluded, wanted.problems)
        else:
            refused = force_exclude and is_excluded(os.path.abspath(root))
            found = iter(() if refused else (root,))
        for name in found:
            identity = os.path.realpath(name)
            if identity not in seen:
                seen.add(identity)
                wanted.shown[os.path.abspath(name)] = name
    return wanted


def files_below(folder: str, suffixes: tuple[str, ...]) -> Iterator[str]:
    """The files with one of these suffixes, but for the folders that `check` skips."""
    return _below(folder, lambda path: False, [], suffixes)


def _below(
    folder: str,
    is_excluded: Callable[[str], bool],
    problems: list[FileProblem],
    suffixes: tuple[str, ...] = SUFFIXES,
) -> Iterator[str]:
    """Files of use in a folder and the folders in it, depth first, by name."""
    waiting = [folder]
    while waiting:
        here = waiting.pop()
        try:
            with os.scandir(here) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            problems.append(FileProblem(here, 0, f"cannot be listed ({error.strerror or error})"))
            continue
        folders = []
        for entry in entries:
            # Not entry.path, which would show a file of the working directory as `./train.py`.
            path = entry.name if here == os.curdir else entry.path
            if _is_folder(entry):
                if not _is_skipped(entry) and not is_excluded(os.path.abspath(path)):
                    folders.append(path)
            elif (
                entry.name.endswith(suffixes)
                and not entry.name.startswith("._")  # macOS keeps a file's attributes in these
                and _is_file(entry)
                and not is_excluded(os.path.abspath(path))
            ):
                yield path
        waiting.extend(reversed(folders))


def _is_folder(entry: os.DirEntry[str]) -> bool:
    return entry.is_dir(follow_symlinks=False)


def _is_file(entry: os.DirEntry[str]) -> bool:
    """A file or a link to one; a link that leads nowhere, or in a circle, is none."""
    try:
        return entry.is_file()
    except OSError:
        return False


def is_in_skipped_folder(path: str) -> bool:
    """A file at an absolute path is that of an installed package or an environment."""
    folders = path.split(os.sep)[:-1]
    return not SKIPPED_FOLDERS.isdisjoint(folders) or any(
        os.path.exists(os.path.join(os.sep.join(folders[:depth]), "pyvenv.cfg"))
        for depth in range(2, len(folders) + 1)
    )


def _is_skipped(entry: os.DirEntry[str]) -> bool:
    name = entry.name
    if name.startswith(".") or name in SKIPPED_FOLDERS or name.endswith(".egg-info"):
        return True
    if name in BUILD_FOLDERS:
        return not os.path.exists(os.path.join(entry.path, "__init__.py"))
    return os.path.exists(os.path.join(entry.path, "pyvenv.cfg"))
