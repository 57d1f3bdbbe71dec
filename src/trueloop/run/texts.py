"""Texts that a model wrote as it trained, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trueloop.files import read_bytes
from trueloop.formatting import capital
from trueloop.names import printable_text
from trueloop.run.directory import Run

_MOST = 24
"""Texts of one name that the report shows, evenly picked, the first and the last among them."""
_LONGEST = 20_000


def texts(run: Run) -> list[dict[str, Any]]:
    """The texts in the run's folder `texts`, by name: the last one, and those before it."""
    root = run.path / "texts"
    folders = sorted(path for path in root.iterdir() if path.is_dir()) if root.is_dir() else []
    found = []
    for folder in folders:
        paths = _picked(sorted(folder.glob("*.txt")))
        if paths:
            shown = [{"updates": f"{int(path.stem):,}", "text": _read(path)} for path in paths]
            title = capital(folder.name.replace("-", " ").replace("_", " "))
            found.append({"title": title, "last": shown[-1], "before": shown[-2::-1]})
    return found


def conversation(facts: Mapping[str, Any]) -> dict[str, Any] | None:
    """A conversation of the data in the pieces that its template makes of it, with whether each is
    learned; None where the data have none, or the file was changed."""
    found = facts.get("conversation")
    pieces = found.get("example") if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or not isinstance(pieces, list):
        return None
    shown = [
        {"text": printable_text(str(piece.get("text"))[:_LONGEST]), "learned": piece.get("learned")}
        for piece in pieces
        if isinstance(piece, Mapping)
    ]
    return {"pieces": shown, "template": printable_text(str(found.get("template")))}


def _picked(paths: list[Path]) -> list[Path]:
    paths = [path for path in paths if path.stem.isdecimal()]
    if len(paths) <= _MOST:
        return paths
    last = len(paths) - 1
    return [paths[round(k * last / (_MOST - 1))] for k in range(_MOST)]


def _read(path: Path) -> str:
    return printable_text(read_bytes(path).decode("utf-8", "replace")[:_LONGEST])
