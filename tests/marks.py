"""The lines of a program that are marked with the code of what is to be found there."""

from __future__ import annotations

import re
from pathlib import Path

MARK = re.compile(r"#\s*<-\s*(T[LHS]\d+)")


def marked(path: Path) -> list[tuple[str, int]]:
    """The code and the number of each line that ends with `# <- TL101`."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found = [(MARK.search(line), number) for number, line in enumerate(lines, 1)]
    return [(mark[1], number) for mark, number in found if mark]
