"""The texts of files that are open in an editor: they are read in place of the files on disk."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

_texts: Mapping[str, bytes] = {}


@contextmanager
def in_place_of_files(texts: Mapping[str, bytes]) -> Iterator[None]:
    """Read these bytes in place of the files at their absolute paths."""
    global _texts
    before, _texts = _texts, texts
    try:
        yield
    finally:
        _texts = before


def unsaved(path: str) -> bytes | None:
    """The bytes to read in place of a file; None if the file itself is to be read."""
    return _texts.get(os.path.abspath(path)) if _texts else None
