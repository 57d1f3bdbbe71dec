"""The path of a file that a program saves or loads, as far as it is known."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

_SAYS_SOMETHING = re.compile(r"[A-Za-z0-9]{2}")


class FilePath(NamedTuple):
    """Where a file is, and where its path comes from."""

    key: str = ""
    """Equal for equal paths of one run."""
    name: str = ""
    """Its last part, `last.pt`, with `{}` where a number or text is put in; empty if unknown."""
    source: Literal["", "literal", "outside", "download"] = ""
    """`literal`: written out in the program. `outside`: from the command line or the environment.
    Empty if unknown: a function's parameter, an entry of a configuration."""
    saved_here: bool = False
    """The program's text saves a file of this name."""

    def may_equal(self, other: FilePath) -> bool:
        """They are the same path, or files of the same name."""
        return bool(self.key and self.key == other.key) or bool(
            self.name and self.name == other.name
        )


NO_PATH = FilePath()


def name_of(path: str) -> str:
    """The last part of a path, if it says more than its ending."""
    name = re.split(r"[/\\]", path)[-1]
    return name if _SAYS_SOMETHING.search(name.partition(".")[0]) else ""
