"""Public training scripts with one statement less: does `check` notice?

`public/removals.json` names statements whose removal is a fault, each with the script that is
checked, the file and line of the statement, and its kind. With `without`, only that piece of the
line goes (`.item()`, `sampler=sampler,`). A `with` gives way to `if True:`, a decorator to nothing,
another statement to `pass`, so that the other lines keep their numbers.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from common import save_results, table
from public_clones import LISTS, folder_of
from public_findings import run_command


@dataclass(frozen=True)
class Removal:
    """One line of `public/removals.json`."""

    repository: str
    script: str
    line: int
    text: str
    kind: str
    path: str = ""
    """The file of the statement, if it is not the script."""
    without: str = ""

    @property
    def file(self) -> str:
        return self.path or self.script


def removals(lists: Path = LISTS) -> list[Removal]:
    content = json.loads((lists / "removals.json").read_text("utf-8"))
    return [Removal(**each) for each in content["removals"]]


def removed(text: str, removal: Removal) -> str:
    """The file's text without the statement. Raises `ValueError` where the line is another one."""
    lines = text.split("\n")
    at = removal.line - 1
    if at >= len(lines) or lines[at].strip()[: len(removal.text)] != removal.text:
        raise ValueError(f"{removal.file}:{removal.line} is not {removal.text!r}")
    if removal.without:
        if removal.without not in lines[at]:
            raise ValueError(f"{removal.file}:{removal.line} has no {removal.without!r}")
        lines[at] = lines[at].replace(removal.without, "", 1)
    elif removal.text.startswith("@"):
        lines[at] = ""
    else:
        blank(lines, innermost(ast.parse(text), removal.line))
    changed = "\n".join(lines)
    ast.parse(changed)
    return changed


def innermost(tree: ast.Module, line: int) -> ast.stmt:
    """The smallest statement that begins in a line."""
    found = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and node.lineno == line]
    if not found:
        raise ValueError(f"no statement begins in line {line}")
    return max(found, key=lambda node: node.col_offset)


def blank(lines: list[str], node: ast.stmt) -> None:
    """Take a statement out of the lines, keeping their number and the body of a `with`."""
    first = node.lineno - 1
    head = lines[first].encode()[: node.col_offset].decode()
    if isinstance(node, ast.With | ast.AsyncWith):
        last = node.body[0].lineno - 2
        lines[first] = f"{head}if True:"
    else:
        assert node.end_lineno is not None
        last = node.end_lineno - 1
        lines[first] = f"{head}pass{lines[last].encode()[node.end_col_offset :].decode()}"
    for at in range(first + 1, last + 1):
        lines[at] = ""


def alarms(folder: Path, script: str) -> Counter[tuple[str, str, int]]:
    """Errors and warnings, as code, file and line."""
    told = run_command(folder, [script])
    return Counter(
        (each["code"], each["path"], each["line"])
        for each in told["findings"]
        if each["severity"] != "advice"
    )


def linked(folder: Path, into: Path) -> None:
    """The same files elsewhere, without a copy of their content."""
    shutil.copytree(folder, into, copy_function=os.link, dirs_exist_ok=True)


def try_removals(folder: Path, lists: Path, only: Sequence[str] | None) -> int:
    """Print what was noticed, by kind and by script."""
    rows: list[dict[str, Any]] = []
    chosen = [each for each in removals(lists) if not only or each.repository in only]
    for repository in dict.fromkeys(each.repository for each in chosen):
        own = folder / folder_of(repository)
        if own.is_dir():
            rows += of_repository(own, [each for each in chosen if each.repository == repository])
        else:
            print(f"not checked out: {repository}")
    for name in ("kind", "repository"):
        print("\n" + table([*summary(rows, name), {name: "total", **totals(rows)}]))
    if lists == LISTS and not only:
        print(save_results("public_removals", {"total": totals(rows), "removals": rows}))
    return 0


def of_repository(own: Path, chosen: Sequence[Removal]) -> list[dict[str, Any]]:
    """Each removal in turn, in a tree of links to the repository's files."""
    rows = []
    with tempfile.TemporaryDirectory(dir=own.parent) as name:
        tree = Path(name) / own.name
        linked(own, tree)
        before = {script: alarms(tree, script) for script in {each.script for each in chosen}}
        for each in chosen:
            target = tree / each.file
            text = target.read_text("utf-8")
            target.unlink()  # not the original, to which it is a link
            target.write_text(removed(text, each), encoding="utf-8")
            new = alarms(tree, each.script) - before[each.script]
            target.write_text(text, encoding="utf-8")
            codes = ", ".join(sorted({code for code, _, _ in new}))
            rows.append({**each.__dict__, "found": codes})
            told = codes or "missed"
            print(f"{each.repository} {each.file}:{each.line} {each.text}: {told}", flush=True)
    return rows


def totals(rows: Sequence[dict[str, Any]]) -> dict[str, Any]:
    found = sum(bool(each["found"]) for each in rows)
    share = f"{found / len(rows):.1%}" if rows else ""
    return {"removed": len(rows), "found": found, "share": share}


def summary(rows: Sequence[dict[str, Any]], name: str) -> list[dict[str, Any]]:
    """A line for each kind of statement, or each repository."""
    return [
        {name: value, **totals([each for each in rows if each[name] == value])}
        for value in sorted({each[name] for each in rows})
    ]
