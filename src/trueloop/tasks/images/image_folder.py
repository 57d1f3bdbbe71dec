"""The images of a folder, with their classes and parts."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trueloop.errors import DataError, nearest
from trueloop.files import special_kind
from trueloop.names import printable, same_name
from trueloop.run.folder import is_run, runs_below

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif"})
_PARTS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")
_WANTED = (
    "give a folder with one folder of images per class, at least two, such as photos/cat and "
    "photos/dog for --data photos"
)
_NUMBER = re.compile(r"([0-9]+)")
_ENDINGS = tuple(EXTENSIONS)
_HIDDEN = "__MACOSX"
_RUNS = "runs"
"""Where the command line puts runs, whose pictures are not images of a class."""
_DIGITS = "0123456789"

Ints = npt.NDArray[np.int64]


@dataclass
class Listing:
    """Image files with their classes, class by class, each in the order of the names."""

    paths: list[str]
    labels: Ints
    status: Ints
    """Of each file (N, 3): size, time of change, and time of change of size, time or rights (which
    cannot be set); -1 and zeros for a link that leads nowhere."""
    ignored: int = 0
    """Files that are not images by their name's ending."""

    @cached_property
    def digest(self) -> bytes:
        """Of the files' names, sizes and times."""
        found = hashlib.sha256()
        base = "" if os.path.isabs(self.paths[0]) else os.getcwd()
        found.update(os.fsencode("\0".join([base, *self.paths])))
        found.update(self.status.tobytes())
        return found.digest()


@dataclass
class ImagePaths:
    """The image files below a folder, in the order of their names."""

    paths: list[str]
    status: Ints
    """See `Listing`."""
    others: int
    """How many files are not images."""


def natural(name: str) -> list[Any]:
    """A sorting key by which `10` comes after `9`: text and numbers by turns."""
    parts: list[Any] = _NUMBER.split(name.lower())
    parts[1::2] = map(int, parts[1::2])
    return parts


def natural_order(names: list[str]) -> list[int]:
    """The positions of `names` in the order of `natural`; equal ones in the order of the names."""
    order = sorted(range(len(names)), key=names.__getitem__)
    keys: list[Any] = _only_numbers(names) or list(map(natural, names))
    return sorted(order, key=keys.__getitem__)


def _only_numbers(names: list[str]) -> list[Any] | None:
    """The number in each name, if that is all that the names differ in: many times as fast to make
    and to sort as their natural keys."""
    if not names:
        return None
    first, last = min(names), max(names)  # what these two begin with, all names do
    same = next((k for k, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), 0)
    head = len(first[:same].rstrip(_DIGITS))
    tail = first[head:].lstrip(_DIGITS)
    if not tail:
        return None
    numbers = [name[head : -len(tail)] for name in names if name.endswith(tail)]
    text = "".join(numbers)
    if len(numbers) < len(names) or not (all(numbers) and text.isascii() and text.isdigit()):
        return None
    return list(map(int, numbers))


def check_folder(path: Path) -> None:
    """Raise `DataError` unless `path` is a folder that can be read."""
    if path.is_file():
        if path.suffix.lower() in _ARCHIVES:
            raise DataError(
                f"{path} is an archive: unpack it, e.g. `tar xf {path.name}` or "
                f"`unzip {path.name}`, and give the folder"
            )
        raise DataError(f"{path} is a file: {_WANTED}")
    if kind := special_kind(path):
        raise DataError(f"{path} is {kind}: {_WANTED}")
    if not path.is_dir():
        raise DataError(f"no folder {path}: check --data")


def find_parts(root: Path) -> dict[str, Path]:
    """The folders of the parts `train`, `val` and `test`, or `{"all": root}`.

    A folder called train makes the difference; valid, validation, training and testing are
    understood too. Raises `DataError`.
    """
    check_folder(root)
    by_name = {folder.name.lower(): folder for folder in _folders(root)}
    parts = {
        part: next(by_name[name] for name in names if name in by_name)
        for part, names in _PARTS.items()
        if any(name in by_name for name in names)
    }
    return parts if "train" in parts else {"all": root}


def find_classes(folder: Path) -> list[str]:
    """The names of the class folders, as `printable` writes them. Raises `DataError` unless there
    are two or more, and for two of one name."""
    found: dict[str, str] = {}
    for entry in _folders(folder):
        name = _class_name(entry)
        if name in found:
            raise DataError(
                f"{folder} has two folders for the class {name!r}, whose names differ only in how "
                "Unicode writes them: put their images into one"
            )
        found[name] = entry.name
    classes = list(found)
    if len(classes) >= 2:
        return classes
    if classes:
        inner = folder / found[classes[0]]
        remedy = f"did you mean {str(inner)!r}?" if len(_folders(inner)) > 1 else _WANTED
        raise DataError(f"{folder} contains only one class ({classes[0]!r}): {remedy}")
    if any(_is_image(name) for name in os.listdir(folder)):
        raise DataError(
            f"{folder} contains images but no class folders: put the images of each class in a "
            "separate folder"
        )
    names = sorted(name for name in os.listdir(folder) if not _is_hidden(name))
    what = f"contains no folders (only files such as {names[0]!r})" if names else "is empty"
    raise DataError(f"{folder} {what}: {_WANTED}")


def list_images(folder: Path, classes: list[str], *, every_class: bool) -> Listing:
    """The images in the class folders of `folder`, at any depth.

    Raises `DataError` for a folder that is none of `classes`, for a class folder without an image
    and, if `every_class`, for a class without a folder.
    """
    below = {_class_name(entry): entry for entry in _folders(folder)}
    for name, entry in below.items():
        if name not in classes:
            raise DataError(
                f"{entry} is not a class of the training images: {nearest(name, classes)}"
            )
    found, labels = [], []
    for label, name in enumerate(classes):
        if name not in below:
            if every_class:
                raise DataError(f"{folder} has no folder for the class {name!r}: add its images")
            continue
        if is_run(below[name]) or (name == _RUNS and any(runs_below(below[name]))):
            raise DataError(
                f"each folder in {folder} is taken for a class, and {name!r} contains runs: "
                f"{_WANTED}"
            )
        images = images_below(below[name])
        if not images.paths:
            raise DataError(
                f"each folder in {folder} is taken for a class, and {name!r} contains no image "
                f"({_endings()}): {_WANTED}"
            )
        found.append(images)
        labels.append(np.full(len(images.paths), label))
    if not found:
        raise DataError(f"{folder} contains no image of a known class: {nearest('', classes)}")
    beside = sum(entry.is_file() and entry.name[0] != "." for entry in folder.iterdir())
    return Listing(
        paths=[path for images in found for path in images.paths],
        labels=np.concatenate(labels),
        status=np.concatenate([images.status for images in found]),
        ignored=beside + sum(images.others for images in found),
    )


def images_below(folder: Path) -> ImagePaths:
    """The image files at any depth: those of a folder, then those of the folders in it.

    A link to a folder is not followed.
    """
    paths: list[str] = []
    status: list[Ints] = []
    others = 0
    left = [os.fspath(folder)]
    while left:
        parent = left.pop()
        folders, names, facts, more = _entries(parent)
        others += more
        above = os.path.join(parent, "")
        order = natural_order(names)
        paths += [above + names[k] for k in order]
        status.append(facts[order])
        left += [above + folders[k] for k in reversed(natural_order(folders))]
    return ImagePaths(paths, np.concatenate(status), others)


def _entries(folder: str) -> tuple[list[str], list[str], Ints, int]:
    """The folders and images in a folder, the images' status, and how many other files."""
    folders, names, facts, others = [], [], [], 0
    with suppress(OSError), _scanned(folder) as entries:
        for entry in entries:
            name = entry.name
            if name[0] == "." or name == _HIDDEN:
                continue
            try:
                is_folder = entry.is_dir()
            except OSError:  # a link in a circle
                is_folder = False
            if is_folder:
                if not entry.is_symlink():
                    folders.append(name)
            elif name.lower().endswith(_ENDINGS):
                names.append(name)
                try:
                    status = entry.stat()
                    facts.append((status.st_size, status.st_mtime_ns, status.st_ctime_ns))
                except OSError:  # a link that leads nowhere: a broken image
                    facts.append((-1, 0, 0))
            else:
                others += 1
    return folders, names, np.array(facts, dtype=np.int64).reshape(-1, 3), others


@contextmanager
def _scanned(folder: str) -> Iterator[Iterator[os.DirEntry[str]]]:
    """`os.scandir`, from a handle where it can: a file's status is then found by its name without a
    path."""
    if os.scandir not in os.supports_fd:
        with os.scandir(folder) as entries:
            yield entries
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        with os.scandir(handle) as entries:
            yield entries
    finally:
        os.close(handle)


def _class_name(folder: Path) -> str:
    return printable(same_name(folder.name))


def _folders(folder: Path) -> list[Path]:
    entries = (e for e in folder.iterdir() if e.is_dir() and not _is_hidden(e.name))
    return sorted(entries, key=lambda entry: natural(entry.name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == _HIDDEN


def _is_image(name: str) -> bool:
    return not _is_hidden(name) and name.lower().endswith(_ENDINGS)


def _endings() -> str:
    return ", ".join(sorted(EXTENSIONS))
