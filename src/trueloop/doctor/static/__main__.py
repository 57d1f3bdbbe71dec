"""`python -m trueloop.doctor.static FILE ...`: what the reader sees, for those who build it.

`-v` prints every event of every run.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from trueloop.doctor.model.events import Ended, Event
from trueloop.doctor.static import check_text
from trueloop.doctor.static.interpreter.values import Constant

_LEFT_OUT = {"place", "turns", "guards", "stack", "grad", "autocast", "serial", "windows"}


def _short(value: Any) -> str:
    name = getattr(value, "name", "") or getattr(value, "kind", "")
    if isinstance(value, Constant):
        return repr(value.value)
    if isinstance(value, (bool, int, float, str, type(None))):
        return repr(value)
    return f"{type(value).__name__}({name})"


def show(event: Event) -> None:
    fields = {key: value for key, value in vars(event).items() if key not in _LEFT_OUT}
    turns = " ".join(f"{turn.loop.kind}.{turn.index}" for turn in event.turns)
    guards = f" if {' and '.join(sorted(event.guards))}" if event.guards else ""
    inner = ", ".join(f"{key}={_short(value)}" for key, value in fields.items())
    grad = "" if event.grad else " no_grad"
    print(f"  {event.place.line:>4} [{turns}]{grad} {type(event).__name__}({inner}){guards}")
    if isinstance(event, Ended):
        print("  ----")


def main() -> None:
    words = sys.argv[1:]
    for path in (word for word in words if not word.startswith("-")):
        text = Path(path).read_text(encoding="utf-8")
        listen = show if "-v" in words else None
        report = check_text(text, path, listen=listen, strict=True)
        for found in report.findings:
            where = f"{path}:{found.place.line}:{found.place.column}"
            print(f"{where} {found.code} {found.severity} {found.message}")


if __name__ == "__main__":
    main()
