"""Decoded images that are kept from run to run, in a file that is mapped into memory."""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from trueloop import cache, files, ranks
from trueloop.feed import BatchDataset
from trueloop.tasks.images.checks import fingerprints
from trueloop.tasks.images.decode import (
    BrokenImageError,
    ImageShape,
    broken_image,
    decode,
    decode_some,
    quiet_about_bombs,
    shared_zeros,
)
from trueloop.tasks.images.image_folder import Listing
from trueloop.tasks.images.pool import on_all
from trueloop.tasks.limits import machine_memory

Pixels = npt.NDArray[np.uint8]
Ints = npt.NDArray[np.int64]
Prints = npt.NDArray[np.uint64]

_KIND = "images"
_VERSION = 2
"""Of what `decode` makes of a file, and of how it is kept."""
_PIXELS, _PRINTS, _FACTS = "pixels", "fingerprints", "facts.json"
_FORM = 8
"""Letters of an entry's name that are of the images' form."""
_MOST_BYTES = 1_000_000_000
_WORTH_BYTES = 10_000_000
_OVERHEAD = 10_000
"""Bytes that a file may be thought larger, for what it takes to open it."""


@dataclass(frozen=True, kw_only=True)
class CacheLocation:
    """Where decoded images may be kept, and how much of it they may take."""

    folder: str | None
    """None for the user's own cache directory."""
    budget: float
    """Bytes."""


class NotCachedError(Exception):
    """The decoded images cannot be kept; the message says why in a few words."""


class CachedImages:
    """The decoded images of a list of files: uint8 (N, channels, height, width), mapped read-only.

    A row is compared with its fingerprint when it is first read. One that differs is decoded from
    its file again; one warning reports it, and the next run decodes all images again.
    """

    def __init__(
        self, folder: Path, paths: list[str], form: ImageShape, pixels: Pixels, prints: Prints
    ) -> None:
        self.folder = folder
        self.paths = paths
        self.form = form
        self.fingerprints = prints
        self._pixels = pixels
        self._checked = np.zeros(len(pixels), dtype=bool)
        self._is_damaged = False

    def take(self, rows: Ints) -> Tensor:
        """The images of these rows, a copy. Raises `DataError` for one that is damaged here and
        cannot be decoded either."""
        images = np.take(self._pixels, rows, axis=0)
        if not self._checked[rows].all():
            wrong = fingerprints(images) != self.fingerprints[rows]
            self._checked[rows[~wrong]] = True
            if wrong.any():
                self._decode_again(images, rows, np.flatnonzero(wrong))
        return torch.from_numpy(images)

    def _decode_again(self, images: Pixels, rows: Ints, wrong: Ints) -> None:
        if not self._is_damaged:
            self._is_damaged = True
            print_line(
                f"images in {self.folder} are damaged: they are read from their files instead"
            )
            cache.remove(self.folder)
        with quiet_about_bombs():
            for place in wrong:
                path = self.paths[rows[place]]
                try:
                    images[place] = decode(path, self.form)
                except BrokenImageError as error:
                    raise broken_image(path, str(error)) from None


class MappedImages(BatchDataset):
    """Some rows of images that are kept, with class indices (int64); gathered batch by batch.

    Batches are (images, labels), or only the images without `labels`.
    """

    def __init__(self, kept: CachedImages, rows: Ints, labels: Ints | None) -> None:
        self.kept = kept
        self.rows = rows
        self.labels = labels
        """Of `rows`."""

    def __len__(self) -> int:
        return len(self.rows)

    def get_batch(self, indices: Ints, epoch: int) -> Any:
        images = self.kept.take(self.rows[indices])
        return images if self.labels is None else (images, torch.from_numpy(self.labels[indices]))


def former_form(listing: Listing, size: int | None, place: CacheLocation) -> ImageShape | None:
    """The form that `choose_form` has chosen for these files and this `size` in a former run; None
    where their decoded images are not kept."""
    try:
        beside = cache.directory(_KIND, place.folder)
        # Locks and folders that are being written have longer names.
        for entry in beside.glob(f"{_key(listing)}{_FORM * '?'}"):
            facts = json.loads(files.read_text(entry / _FACTS, _MOST_BYTES))
            if facts["chosen for"] == [size]:
                form = ImageShape(**facts["form"])
                return form if entry.name == _name(listing, form) else None
    except (OSError, ValueError, KeyError, TypeError):
        pass  # `keep` says what is wrong
    return None


def keep(
    listing: Listing,
    form: ImageShape,
    place: CacheLocation,
    *,
    chosen_for: list[int | None],
    what: str,
    quiet: bool,
) -> tuple[CachedImages, dict[int, str]] | None:
    """The decoded images of these files, those of a former run if the files are the same, and the
    reasons of the broken ones, whose rows are empty.

    `chosen_for` is the size that `form` was chosen for by these very images, else empty.

    None where they are so few that decoding them takes no time. Raises `NotCachedError` where they
    cannot be kept.
    """
    if int((listing.status[:, 0] + _OVERHEAD).sum()) < _WORTH_BYTES:
        return None
    try:
        entry = cache.directory(_KIND, place.folder) / _name(listing, form)
        filling = _CacheWriter(listing.paths, form, chosen_for, what, quiet)
        return _open_or_fill(entry, filling, place)
    except OSError as error:
        where = "" if error.filename is None else f"{error.filename}: "
        raise NotCachedError(f"{where}{error.strerror or error}") from None


@dataclass(frozen=True)
class _CacheWriter:
    """The files to decode into a new entry."""

    paths: list[str]
    form: ImageShape
    chosen_for: list[int | None]
    what: str
    quiet: bool

    @property
    def folder(self) -> str:
        return os.path.dirname(os.path.dirname(self.paths[0])) or "."


def _open_or_fill(
    entry: Path, filling: _CacheWriter, place: CacheLocation
) -> tuple[CachedImages, dict[int, str]] | None:
    paths, form = filling.paths, filling.form
    found = _open(entry, paths, form, tell=True)
    if found is None:
        entry.parent.mkdir(parents=True, exist_ok=True)
        waiting = f"waiting for the process that decodes the images of {filling.folder}"
        with cache.locked(entry, lambda: print_line(waiting)) as alone:
            found = _open(entry, paths, form)
            if found is None:
                reason = cache.refusal(entry, len(paths) * form.bytes, place.budget)
                if reason is not None:
                    raise NotCachedError(reason)
                with cache.publishing(entry, alone=alone) as new:
                    _fill(new, filling)
                found = _open(entry, paths, form)
    cache.touch(entry)
    return found


def _fill(folder: Path, filling: _CacheWriter) -> None:
    """Decode all images into new files in `folder`."""
    paths, form = filling.paths, filling.form
    prints = shared_zeros((len(paths),), np.uint64)
    with cache.flushed(folder / _PIXELS) as file:
        handle = file.fileno()
        os.truncate(handle, len(paths) * form.bytes)

        def work(rows: range) -> dict[int, str]:
            # Written, not mapped: a full disk is then an error, and not the end of the process.
            images, broken = decode_some(paths, rows, form)
            _write(handle, images, rows.start * form.bytes)
            prints[rows.start : rows.stop] = fingerprints(images)
            return broken

        with quiet_about_bombs():
            broken = on_all(work, len(paths), what=filling.what, quiet=filling.quiet)
    content = prints.tobytes()
    with cache.flushed(folder / _PRINTS) as file:
        file.write(content)
    facts = {
        "version": _VERSION,
        "folder": filling.folder,
        "images": len(paths),
        "form": asdict(form),
        "chosen for": filling.chosen_for,
        "fingerprints": hashlib.sha256(content).hexdigest(),
        "broken": list(broken),
    }
    with cache.flushed(folder / _FACTS) as file:
        file.write(json.dumps(facts).encode())


def _write(handle: int, images: Pixels, offset: int) -> None:
    left = images.data.cast("B")
    while left:
        count = os.pwrite(handle, left, offset)
        left, offset = left[count:], offset + count


def _open(
    entry: Path, paths: list[str], form: ImageShape, *, tell: bool = False
) -> tuple[CachedImages, dict[int, str]] | None:
    """The content that `_fill` has written; None where it is not there, or not whole."""
    try:
        facts = json.loads(files.read_text(entry / _FACTS, _MOST_BYTES))
        content = files.read_bytes(entry / _PRINTS, 8 * len(paths))
        if hashlib.sha256(content).hexdigest() != facts["fingerprints"]:
            raise ValueError
        pixels = _mapped(entry / _PIXELS, (len(paths), form.channels, form.height, form.width))
        broken = _still_broken(paths, form, facts["broken"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (files.NotAFileError, files.TooLargeError, ValueError, KeyError, TypeError):
        if tell:
            print_line(f"{entry} is damaged or cut short: the images are decoded again")
        return None
    if broken is None:  # one can be read now: it is to be kept too
        return None
    return CachedImages(entry, paths, form, pixels, np.frombuffer(content, np.uint64)), broken


def _mapped(path: Path, shape: tuple[int, ...]) -> Pixels:
    with files.open_regular(path) as file:
        if os.fstat(file.fileno()).st_size != np.prod(shape):
            raise ValueError
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    # From a disk, one long read beforehand is faster than one for each image.
    if hasattr(mmap, "MADV_WILLNEED") and 2 * len(mapped) <= (machine_memory() or 0):
        mapped.madvise(mmap.MADV_WILLNEED)
    return np.frombuffer(mapped, dtype=np.uint8).reshape(shape)


def _still_broken(paths: list[str], form: ImageShape, rows: list[int]) -> dict[int, str] | None:
    """The reasons as they are now; None where one of the images can be decoded.

    What was wrong may have been the disk, or a right to read it.
    """
    broken: dict[int, str] = {}
    for row in rows:
        _, found = decode_some(paths, range(row, row + 1), form)
        broken |= found
    return broken if len(broken) == len(rows) else None


def _name(listing: Listing, form: ImageShape) -> str:
    """Of the entry: a digest of all that the pixels depend on."""
    return _key(listing) + hashlib.sha256(repr(asdict(form)).encode()).hexdigest()[:_FORM]


def _key(listing: Listing) -> str:
    """Of the files' names, sizes and times, and of what decodes them."""
    from PIL import __version__, features

    codecs = [features.version(name) for name in ("jpg", "libjpeg_turbo", "webp")]
    found = hashlib.sha256(repr((_VERSION, __version__, codecs)).encode())
    found.update(listing.digest)
    return found.hexdigest()[:24]


def print_line(what: str) -> None:
    """One line for the user, from one of the ranks."""
    if ranks.is_main():
        warnings.warn(what, RuntimeWarning, stacklevel=2)
