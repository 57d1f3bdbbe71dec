"""The user's own task files, each a module of this package: `trueloop.tasks.own.my_task`.

Worker processes that are not forked unpickle what they are given, and import the modules of its
classes for it. They receive this process's `sys.path`, so it contains the files' folders, marked to
be distinguished from other folders.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

_MARK = f"{os.sep}."


class _Folders:
    """The marked folders, the latest first, as `sys.path` has them at the time of an import."""

    def __iter__(self) -> Iterator[str]:
        return reversed([entry for entry in sys.path if entry.endswith(_MARK)])


__path__ = _Folders()  # type: ignore[assignment]


def add(folder: Path) -> None:
    """Let modules of this package, and each other, be found in `folder`."""
    entry = f"{folder}{_MARK}"
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
    if entry in sys.path:
        sys.path.remove(entry)
    sys.path.append(entry)
