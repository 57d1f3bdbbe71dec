"""The profile of a run as the report shows it."""

from __future__ import annotations

from typing import Any

from trueloop.formatting import percent
from trueloop.run.directory import Run

_SHOWN = 10
"""Operations in the table."""


def profile_of(run: Run) -> dict[str, Any] | None:
    """Words and tables for the page; None where no update was traced."""
    found = run.profile
    if found is None:
        return None
    tables = [("Operations by their own time", "operation", found["operations"])]
    if "kernels" in found:
        tables.append(("Kernels of the device by time", "kernel", found["kernels"]))
    return {
        "facts": _facts(found),
        "phases": [_row(phase) for phase in found["phases"]],
        "tables": [
            {"title": title, "what": what, "rows": [_row(row) for row in rows[:_SHOWN]]}
            for title, what, rows in tables
        ],
    }


def _facts(found: dict[str, Any]) -> str:
    first, count, seconds = found["first"], found["updates"], found["seconds"]
    which = f"Update {first:,}" if count == 1 else f"Updates {first:,} to {first + count - 1:,}"
    facts = [f"{which}, {_time(seconds / count)} each with the profiler's own cost"]
    if "busy" in found:
        facts.append(f"the device was busy {percent(found['busy'])} of that time")
    if found["memory_bytes"] is not None:
        whose = "the process has" if found["device"] == "cpu" else "tensors on the device have"
        facts.append(f"{whose} taken at most {_bytes(found['memory_bytes'])} so far")
    return "; ".join(facts) + "."


def _row(row: dict[str, Any]) -> dict[str, str]:
    return {
        "name": row["name"],
        "calls": f"{row.get('calls', 0):,}",
        "time": _time(row["seconds"]),
        "share": percent(row["share"]),
        "width": f"{100 * row['share']:.1f}",
    }


def _time(seconds: float) -> str:
    """Three digits, in the unit that suits them."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / 1e-6:.3g} µs"


def _bytes(number: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number / 1e3:.3g} kB"
