"""Which images a folder holds, of which classes and in which parts."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt

from trueloop.errors import DataError, nearest
from trueloop.files import special_kind
from trueloop.names import printable, same_name

EXTENSIONS = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif"})
_PARTS = {
    "train": ("train", "training"),
    "val": ("val", "valid", "validation"),
    "test": ("test", "testing"),
}
_ARCHIVES = (".zip", ".tar", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar")
_NUMBER = re.compile(r"([0-9]+)")


@dataclass
class Listing:
    """Image files with their classes, class by class, each in the order of the names."""

    paths: list[Path] = field(default_factory=list)
    labels: list[int] = field(default_factory=list)
    ignored: int = 0
    """Files that are not images by their name's ending."""

    def rows(self, rows: npt.NDArray[np.int64]) -> Listing:
        """The listing of some of the images."""
        return Listing([self.paths[k] for k in rows], [self.labels[k] for k in rows])


def natural(name: str) -> list[tuple[int, int, str]]:
    """A sorting key by which `10` comes after `9`."""
    parts = _NUMBER.split(name)  # text and numbers by turns
    return [(0, int(part), "") if k % 2 else (1, 0, part.lower()) for k, part in enumerate(parts)]


def check_folder(path: Path) -> None:
    """Raise `DataError` unless `path` is a folder that can be read."""
    if path.is_file():
        if path.suffix.lower() in _ARCHIVES:
            raise DataError(
                f"{path} is an archive: unpack it, e.g. `tar xf {path.name}` or "
                f"`unzip {path.name}`, and give the folder"
            )
        raise DataError(f"{path} is a file: give a folder with one folder of images per class")
    if kind := special_kind(path):
        raise DataError(f"{path} is {kind}: give a folder with one folder of images per class")
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
        raise DataError(
            f"{folder} holds one class only ({classes[0]!r}): give one folder of images per class, "
            "at least two"
        )
    if any(_is_image(name) for name in os.listdir(folder)):
        raise DataError(
            f"{folder} holds images but no class folders: put the images of each class in a folder "
            "of its own"
        )
    raise DataError(f"{folder} is empty: give a folder with one folder of images per class")


def list_images(folder: Path, classes: list[str], *, every_class: bool) -> Listing:
    """The images in the class folders of `folder`, at any depth.

    Raises `DataError` for a folder that is none of `classes`, for a class folder without an image
    and, if `every_class`, for a class without a folder.
    """
    listing = Listing()
    below = {_class_name(entry): entry for entry in _folders(folder)}
    for name, entry in below.items():
        if name not in classes:
            raise DataError(
                f"{entry} is not a class of the training images: {nearest(name, classes)}"
            )
    for label, name in enumerate(classes):
        if name not in below:
            if every_class:
                raise DataError(f"{folder} has no folder for the class {name!r}: add its images")
            continue
        paths, ignored = images_below(below[name])
        if not paths:
            raise DataError(
                f"the class folder {below[name]} holds no image ({_endings()}): add images or "
                "remove it"
            )
        listing.paths += paths
        listing.labels += [label] * len(paths)
        listing.ignored += ignored
    listing.ignored += sum(entry.is_file() and entry.name[0] != "." for entry in folder.iterdir())
    if not listing.paths:
        raise DataError(f"{folder} holds no image of a known class: {nearest('', classes)}")
    return listing


def images_below(folder: Path) -> tuple[list[Path], int]:
    """The image files at any depth, in the order of their names, and how many other files."""
    paths, others = [], 0
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted((f for f in folders if not _is_hidden(f)), key=natural)
        for name in sorted(files, key=natural):
            if _is_image(name):
                paths.append(Path(parent, name))
            elif not _is_hidden(name):
                others += 1
    return paths, others


def _class_name(folder: Path) -> str:
    return printable(same_name(folder.name))


def _folders(folder: Path) -> list[Path]:
    entries = (e for e in folder.iterdir() if e.is_dir() and not _is_hidden(e.name))
    return sorted(entries, key=lambda entry: natural(entry.name))


def _is_hidden(name: str) -> bool:
    return name.startswith(".") or name == "__MACOSX"


def _is_image(name: str) -> bool:
    return not _is_hidden(name) and os.path.splitext(name)[1].lower() in EXTENSIONS


def _endings() -> str:
    return ", ".join(sorted(EXTENSIONS))
