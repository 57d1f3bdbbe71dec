"""Which data: a digest of a file or folder that a run was trained or evaluated on."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trueloop.files import open_regular

# Reading all of a large data set at each start would take minutes: of more than 16 MiB, so many
# blocks are read, evenly spaced over all files.
_BLOCK, _BLOCKS = 1 << 16, 256
_MOST_READ = 10_000
_MOST_LISTED = 200_000


def data_facts(path: Path | None) -> dict[str, Any] | None:
    """The size of a file or folder, and its SHA-256; None where there is nothing.

    Args:
        path: the data as the user named it.

    Returns:
        `path` (absolute), `files`, `bytes`, `digest` (of the files' names in the folder, sizes and
        contents) and `of`, how much of the contents it covers. Of very many files, or ones that
        cannot be read, `digest` is None.
    """
    if path is None or not path.exists():
        return None
    facts: dict[str, Any] = {"path": str(path.resolve())}
    try:
        listed = sorted(_files(path))
        facts |= {"files": len(listed), "bytes": sum(size for _, size in listed)}
        return facts | _digest(path, listed, facts["bytes"])
    except (OSError, _TooManyError) as error:
        return facts | {"digest": None, "of": str(error)}


class _TooManyError(Exception):
    """A folder has more files than are listed for a digest."""


def _files(path: Path) -> Iterator[tuple[str, int]]:
    """The files below `path`, by their names in it, and their sizes; of a file, itself."""
    if path.is_file():
        yield "", path.stat().st_size
        return
    count = 0
    for root, _, names in os.walk(path):
        for name in names:
            found = os.path.join(root, name)
            if os.path.isfile(found):
                count += 1
                if count > _MOST_LISTED:
                    raise _TooManyError(f"more than {_MOST_LISTED:,} files")
                yield os.path.relpath(found, path), os.stat(found).st_size


def _digest(path: Path, listed: list[tuple[str, int]], total: int) -> dict[str, str]:
    found = hashlib.sha256()
    for name, size in listed:
        found.update(os.fsencode(name) + b"\0%d\0" % size)
    if len(listed) > _MOST_READ:
        return {"digest": found.hexdigest(), "of": "names and sizes"}
    whole = total <= _BLOCK * _BLOCKS
    apart = _BLOCK if whole else total // _BLOCKS
    next_at = 0  # of all bytes, one file after the other
    start = 0
    for name, size in listed:
        if next_at < start + size:
            with open_regular(path / name if name else path) as file:
                while next_at < start + size:
                    file.seek(next_at - start)
                    found.update(file.read(_BLOCK if not whole else size - (next_at - start)))
                    next_at = start + size if whole else next_at + apart
        start += size
    return {"digest": found.hexdigest(), "of": "contents" if whole else "samples of the contents"}
