"""Memory in pages of 2 MB: a fork then copies a table of a few hundred entries, not of a hundred
thousand, and the end of its process frees as few."""

from __future__ import annotations

import ctypes
from pathlib import Path

COLLAPSE = 25
"""`MADV_COLLAPSE` of <linux/mman.h>."""


def collapse() -> None:
    """Put all that this process has allocated into such pages; where Linux is older than 6.1 or has
    none, nothing happens."""
    maps = Path("/proc/self/maps")
    if not maps.exists():
        return
    madvise = ctypes.CDLL(None).madvise
    madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    for line in maps.read_text().splitlines():
        addresses, allowed, *_, inode, file = (*line.split(maxsplit=5), "")[:6]
        if allowed == "rw-p" and inode == "0" and file in ("", "[heap]"):
            start, end = (int(address, 16) for address in addresses.split("-"))
            madvise(start, end - start, COLLAPSE)
