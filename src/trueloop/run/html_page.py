"""The parts of the pages: charts, tables of facts, templates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from trueloop.checkpoint import cannot_write, write_atomic
from trueloop.run.charts import Figure
from trueloop.run.formatting import number

SCRIPT = "plotly.min.js"
"""The one file that a page needs beside it."""
_MOST_ROWS = 24
"""Rows that a nested fact takes of a table."""


@dataclass
class Chart:
    """A figure with its words. `name` is its id on the page."""

    name: str
    title: str
    figure: Figure
    note: str = ""
    wide: bool = False


@dataclass
class Section:
    """A titled group of charts."""

    title: str
    charts: list[Chart] = field(default_factory=list)
    note: str = ""


def when(started: str) -> str:
    """An ISO 8601 time as people write it; as it is if it is none."""
    try:
        time = datetime.fromisoformat(started)
    except ValueError:
        return started
    return f"{time.day} {time:%B %Y, %H:%M} UTC"


def flatten(facts: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested facts as rows of a table, with dotted names; of long ones, the first rows."""
    rows: list[tuple[str, str]] = []
    for count, (key, value) in enumerate(facts.items()):
        if prefix and count == _MOST_ROWS:
            rows.append((f"{prefix}…", f"{len(facts) - count:,} more, in the run's JSON file"))
            break
        if isinstance(value, Mapping) and value:
            rows.extend(flatten(value, f"{prefix}{key}."))
        else:
            rows.append((f"{prefix}{key}", show(value)))
    return rows


def show(value: Any) -> str:
    """A value of a table in one cell; long lists are cut, with their full length."""
    if value is None or value == {}:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:g}" if math.isfinite(value) else number(value)
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    if isinstance(value, list):
        shown = ", ".join(show(item) for item in value[:24])
        return f"{shown}, … ({len(value):,} in all)" if len(value) > 24 else shown or "none"
    return str(value)


def publish(page: Path, template: str, context: Mapping[str, Any]) -> None:
    """Render the template and write the page, with plotly's script beside it."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    jinja = Environment(
        loader=PackageLoader("trueloop.run", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    text = jinja.get_template(template).render(script=SCRIPT, **context)
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(page, error) from None
    write_atomic(page, text.encode("utf-8", "replace"))
    script = page.with_name(SCRIPT)
    if not script.exists():
        from plotly.offline import get_plotlyjs

        write_atomic(script, get_plotlyjs().encode())
