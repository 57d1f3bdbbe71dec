"""Columns as they are written on a command line."""

from __future__ import annotations

import shlex
from collections.abc import Iterable

_QUOTE = '"'


def option_value(columns: Iterable[str]) -> str:
    """The value of an option that takes several columns, as it is typed in a shell: a name with a
    comma or a quotation mark is put in quotation marks, as in CSV."""
    names = (f'"{n.replace(_QUOTE, 2 * _QUOTE)}"' if {",", _QUOTE} & set(n) else n for n in columns)
    return shlex.quote(",".join(names))
