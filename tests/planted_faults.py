"""A checker whose findings are planted, for tests of what is around the real one.

`TL101()` in a program is an error of that code; `TL101("delete")` has a remedy; the line that calls
`related()` is the other line involved; `long()` is where reading
stops; `import helper` follows the file beside it, if there is one.
"""

from __future__ import annotations

import ast
import os
import re
from pathlib import Path
from typing import Any

from trueloop.doctor.model.findings import Delete, Finding, Location, Related
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.static import Report
from trueloop.doctor.static.inputs.cache import digest_of_file
from trueloop.doctor.static.inputs.skipped import Gaps


def check_text(text: str, path: str, *, steps: int = 0, above: int = 0) -> Report:
    gaps = Gaps()
    if "long()" in text:
        gaps.cuts.append((Location(path, text[: text.index("long()")].count("\n") + 1), 40_000))
    if "broken_checker()" in text:
        raise KeyError("a bug")
    if "fatal()" in text:
        os._exit(9)
    tree = ast.increment_lineno(ast.parse(text), above)
    followed: dict[str, str] = {}
    findings = _planted(tree, path)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            helper = Path(path).with_name(f"{node.names[0].name}.py")
            followed[str(helper)] = digest_of_file(str(helper))
            if helper.is_file():
                findings += _planted(ast.parse(helper.read_text("utf-8")), str(helper))
    return Report(findings, followed, gaps, steps=1)


def _planted(tree: ast.Module, path: str) -> list[Finding]:
    def place(node: Any) -> Location:
        return Location(
            path, node.lineno, node.col_offset + 1, node.end_lineno, node.end_col_offset + 1
        )

    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    named = [(node.func.id, node) for node in calls if isinstance(node.func, ast.Name)]
    related = [
        Related(place(node), "the step that finds them cleared")
        for name, node in named
        if name == "related"
    ]
    return [
        Finding(
            name,
            BY_CODE[name].name,
            BY_CODE[name].severity,
            place(node),
            "`optimizer.zero_grad()` erases the gradients. The step finds nothing.",
            "Move it to the start of the loop.",
            related=tuple(related),
            remedies=(Delete(place(node)),) if node.args else (),
        )
        for name, node in named
        if re.fullmatch(r"TL\d{3}", name)
    ]
