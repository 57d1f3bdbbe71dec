"""The index of a set of shards: how many samples each block of each shard has, and where it is.

It is made once, and kept in one file beside the shards, or in the user's folder for caches. A shard
whose size or stamp has changed is looked at again.
"""

from __future__ import annotations

import functools
import hashlib
import io
import json
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from trueloop import _options, cache, files
from trueloop.atomic import write_whole
from trueloop.errors import ConfigError, DataError
from trueloop.feed.shards import columnar, tar
from trueloop.feed.shards.blocks import Blocks
from trueloop.feed.shards.storage import File, Storage, is_url

Whole = npt.NDArray[np.int64]

FORMATS: dict[str, tuple[str, ...]] = {
    "tar": tar.SUFFIXES,
    "parquet": columnar.PARQUET,
    "arrow": columnar.ARROW,
}
EXAMINE: dict[str, Callable[[Storage, File], Blocks]] = {
    "tar": tar.examine,
    "parquet": columnar.examine_parquet,
    "arrow": columnar.examine_arrow,
}
_VERSION = 1
_THREADS = 8
_ARRAYS = ("counts", "samples", "starts", "stops", "sizes")


@dataclass
class Index:
    """All shards, and their blocks one after the other."""

    format: str
    files: list[File]
    counts: Whole
    """Blocks of each shard."""
    samples: Whole
    """Samples of each block."""
    starts: Whole
    stops: Whole
    sizes: Whole
    """Bytes that each block takes in memory."""
    fields: list[dict[str, str]]
    """The fields of each shard, with their types in words."""
    missing: list[dict[str, int]]
    """For each shard, how many samples lack a field."""

    @functools.cached_property
    def shards(self) -> Whole:
        """The shard of each block."""
        return np.repeat(np.arange(len(self.files)), self.counts)

    @functools.cached_property
    def ends(self) -> Whole:
        """Samples up to the end of each block."""
        return np.cumsum(self.samples)

    def digest(self) -> str:
        """Names and sizes of the shards, and their blocks: the order and the samples depend on
        them, and not on where the shards are."""
        facts = [(file.path.rpartition("/")[2], file.size) for file in self.files]
        found = hashlib.sha256(json.dumps([_VERSION, self.format, facts]).encode())
        found.update(self.samples.tobytes())
        return found.hexdigest()[:16]


def find(data: Any, storage: Storage, where: str | os.PathLike[str] | None) -> Index:
    """The index of the shards that `data` names, from its file or newly made.

    `where` is that file; None is one beside the shards, or in the folder for caches. Warns if
    shards have changed since it was made.
    """
    form, listed = _of_one_format(storage.find(data))
    places = _places(data, listed) if where is None else [_options.path("index", where)]
    index = _complete(_loaded(places), form, listed)
    if index is not None:
        return index
    with _locked(places[-1]):
        old = _loaded(places)  # perhaps somebody else has made it meanwhile
        index = _complete(old, form, listed)
        if index is None:
            index = _made(storage, form, listed, old)
            _save(index, places, is_asked_for=where is not None)
    return index


def _of_one_format(listed: list[File]) -> tuple[str, list[File]]:
    by_format: dict[str, list[File]] = {}
    for file in listed:
        path = file.path.partition("?")[0].lower() if file.is_remote else file.path.lower()
        for form, suffixes in FORMATS.items():
            if path.endswith(suffixes):
                by_format.setdefault(form, []).append(file)
    if len(by_format) == 1:
        return next(iter(by_format.items()))
    known = ", ".join(suffix for suffixes in FORMATS.values() for suffix in suffixes)
    if by_format:
        first = " and ".join(str(found[0].path) for found in by_format.values())
        raise DataError(f"the shards are of several formats ({first}): give those of one")
    shown = listed[0].path
    if shown.lower().endswith((".gz", ".tgz", ".zst", ".bz2", ".xz")):
        raise DataError(
            f"{shown} is compressed as a whole, so that nothing in it can be reached by its "
            f"offset: unpack it first, e.g. with gunzip"
        )
    raise DataError(f"{shown} is not a shard: give files that end with {known}")


def _places(data: Any, listed: list[File]) -> list[Path]:
    """Where the index may be, the best first."""
    given = [data] if isinstance(data, (str, os.PathLike)) else list(data)
    names = [os.fspath(each) for each in given]
    beside = None
    if not is_url(names[0]):
        parents = {os.path.dirname(file.path) for file in listed}
        beside = os.path.commonpath([os.path.abspath(parent) for parent in parents])
        names = [os.path.relpath(os.path.abspath(name), beside) for name in names]
    key = hashlib.sha256(json.dumps([names, beside if len(names) > 1 else None]).encode())
    name = f"{key.hexdigest()[:16]}.npz"
    full = hashlib.sha256(json.dumps([beside, names]).encode()).hexdigest()[:32]
    found = [] if beside is None else [Path(beside, f".trueloop-index-{name}")]
    try:
        found.append(cache.directory("shards") / f"{full}.npz")
    except OSError as error:
        if not found:
            raise ConfigError(
                f"the index of the shards cannot be written ({error.strerror}): write "
                f"index=FILE, or name a folder in ${cache.VARIABLE}"
            ) from None
    return found


def _made(storage: Storage, form: str, listed: list[File], old: Index | None) -> Index:
    """The index of `listed`; what `old` knows of shards that are as they were is taken from it."""
    known = (
        {} if old is None or old.format != form else {f.path: k for k, f in enumerate(old.files)}
    )
    changed = []
    found: list[Blocks | None] = []
    for file in listed:
        number = known.get(file.path)
        same = old is not None and number is not None and old.files[number] == file
        found.append(_blocks_of(old, number) if same and old and number is not None else None)
        if not same:
            changed.append(file)
    if known:
        _warn_changed(listed, changed, list(known))
    with ThreadPoolExecutor(_THREADS) as pool:
        new = pool.map(functools.partial(EXAMINE[form], storage), changed)
        blocks = [each if each is not None else next(new) for each in found]
    return _joined(form, listed, blocks)


def _warn_changed(listed: list[File], changed: list[File], gone: list[str]) -> None:
    known = {file.path for file in listed}
    removed = [path for path in gone if path not in known]
    first = changed[0].path if changed else removed[0] if removed else None
    if first is None:
        return
    warnings.warn(
        f"{len(changed)} of {len(listed)} shards are new or have changed since they were indexed, "
        f"{len(removed)} are gone, the first {first}: the index is made again for these; a run "
        "that was begun with the old ones cannot continue with these",
        RuntimeWarning,
        stacklevel=4,
    )


def _joined(form: str, listed: list[File], blocks: Sequence[Blocks]) -> Index:
    def together(name: str) -> Whole:
        return np.array([n for each in blocks for n in getattr(each, name)], dtype=np.int64)

    return Index(
        format=form,
        files=listed,
        counts=np.array([len(each.samples) for each in blocks], dtype=np.int64),
        samples=together("samples"),
        starts=together("starts"),
        stops=together("stops"),
        sizes=together("sizes"),
        fields=[each.fields for each in blocks],
        missing=[each.missing for each in blocks],
    )


def _blocks_of(index: Index, shard: int) -> Blocks:
    """One shard as the index describes it."""
    first = int(index.counts[:shard].sum())
    part = slice(first, first + int(index.counts[shard]))
    return Blocks(
        samples=index.samples[part].tolist(),
        starts=index.starts[part].tolist(),
        stops=index.stops[part].tolist(),
        sizes=index.sizes[part].tolist(),
        fields=index.fields[shard],
        missing=index.missing[shard],
    )


def _complete(index: Index | None, form: str, listed: list[File]) -> Index | None:
    """The index, if it is that of these very files."""
    fits = index is not None and index.format == form and index.files == listed
    return index if fits else None


def _loaded(places: Sequence[Path]) -> Index | None:
    """The first index that is there and can be read; one that is damaged is made again."""
    for place in places:
        try:
            content = files.read_bytes(place)
        except OSError:
            continue
        with suppress(ValueError, LookupError, TypeError, EOFError, zipfile.BadZipFile):
            return _from_bytes(content)
    return None


def _from_bytes(content: bytes) -> Index:
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        facts = json.loads(arrays["facts"].tobytes())
        if facts["version"] != _VERSION:
            raise ValueError("of a different version")
        shards = [File(*entry) for entry in facts["files"]]
        fields = [facts["fields"][number] for number in facts["fields_of"]]
        index = Index(
            format=facts["format"],
            files=shards,
            **{name: arrays[name] for name in _ARRAYS},
            fields=fields,
            missing=facts["missing"],
        )
    if len(index.counts) != len(shards) or index.counts.sum() != len(index.samples):
        raise ValueError("its parts do not fit")
    return index


def _to_bytes(index: Index) -> bytes:
    kinds: dict[str, int] = {}
    numbers = [kinds.setdefault(json.dumps(fields), len(kinds)) for fields in index.fields]
    facts = {
        "version": _VERSION,
        "format": index.format,
        "files": [[f.path, f.size, f.stamp, f.is_remote] for f in index.files],
        "fields": [json.loads(text) for text in kinds],
        "fields_of": numbers,
        "missing": index.missing,
    }
    buffer = io.BytesIO()
    words = np.frombuffer(json.dumps(facts).encode(), dtype=np.uint8)
    arrays = {name: getattr(index, name) for name in _ARRAYS}
    np.savez(buffer, facts=words, **arrays)
    return buffer.getvalue()


def _save(index: Index, places: Sequence[Path], *, is_asked_for: bool) -> None:
    content = _to_bytes(index)
    for place in places:
        try:
            write_whole(place, content)
        except OSError as error:
            reason = error
            continue
        return
    if is_asked_for:
        raise ConfigError(
            f"cannot write the index {places[-1]} ({reason.strerror or reason}): make its folder "
            "writable, or write index=FILE with a different one"
        )
    warnings.warn(
        f"the index of the shards cannot be kept in {places[-1]} ({reason.strerror or reason}), "
        "and is made again by each process and run: write index=FILE with one that can be written",
        RuntimeWarning,
        stacklevel=4,
    )


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """After everybody else who makes this index on this machine; where no lock can be had, at
    once."""
    with ExitStack() as held:
        with suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            held.enter_context(cache.locked(path.with_name(f".{path.name.lstrip('.')}")))
        yield
