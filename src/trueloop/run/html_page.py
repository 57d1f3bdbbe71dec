"""The parts of the pages: charts, tables of facts, templates."""

from __future__ import annotations

import base64
import functools
import gzip
import math
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trueloop.checkpoint import cannot_write, write_atomic
from trueloop.formatting import number
from trueloop.run.charts import Figure

if TYPE_CHECKING:
    from jinja2 import Environment

SCRIPT = "plotly.min.js"
"""The one file that a page needs beside it."""
EMPTY = "–"
"""A cell of a table without a value."""
_MOST_ROWS = 24
"""Rows that a nested fact takes of a table."""
_MOST_PACKED = 6_000_000
"""Bytes of the pictures in a page that is one file: with base64 and the script, under 10 MB."""


@dataclass
class Chart:
    """A figure with its words. `name` is its id on the page."""

    name: str
    title: str
    figure: Figure
    note: str = ""
    wide: bool = False

    @property
    def label(self) -> str:
        """The chart in words, for those who do not see it: its title and where its lines end."""
        ends = []
        for trace in self.figure["data"]:
            values = [v for v in trace.get("y", ()) if isinstance(v, float)]
            if trace.get("mode") == "lines" and values:
                ends.append(f"{trace['name']} ends at {number(values[-1])}")
        return "; ".join([self.title, *ends])


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
        return EMPTY
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


@dataclass
class Rewritten:
    """When a page of a run that is going on was written, and how often that happens."""

    every: str
    """As the user wrote it: "5 minutes"."""
    seconds: int
    """After which the page loads itself again."""
    at: str = field(default_factory=lambda: f"{datetime.now():%H:%M:%S}")


def publish(page: Path, template: str, context: Mapping[str, Any]) -> None:
    """Render the template and write the page, with plotly's script beside it."""
    text = _rendered(template, {**context, "script": SCRIPT})
    _write(page, text)
    script = page.with_name(SCRIPT)
    if not script.exists():
        from plotly.offline import get_plotlyjs

        write_atomic(script, get_plotlyjs().encode())


def publish_packed(page: Path, template: str, context: Mapping[str, Any], *, beside: Path) -> Path:
    """Render the template and write the page as one file: plotly's script is in it, compressed, and
    so are its pictures, which are files `beside` the page; those beyond 6 MB in all are
    not part of it."""
    from plotly.offline import get_plotlyjs

    left = _MOST_PACKED
    pictures = []
    for each in context.get("pictures", ()):
        path = beside / each["file"]
        left -= path.stat().st_size
        if left >= 0:
            pictures.append({**each, "file": _as_data(path), "still": ""})
    packed = base64.b64encode(gzip.compress(get_plotlyjs().encode(), mtime=0)).decode()
    facts = {**context, "packed": packed, "is_one_file": True}
    if "pictures" in context:
        facts["pictures"] = pictures
    _write(page, _rendered(template, facts))
    return page


def _as_data(path: Path) -> str:
    kind = mimetypes.guess_type(path.name)[0] or "image/webp"
    return f"data:{kind};base64,{base64.b64encode(path.read_bytes()).decode()}"


def _rendered(template: str, context: Mapping[str, Any]) -> str:
    defaults = {"packed": None, "is_one_file": False, "rewritten": None}
    return templates().get_template(template).render(**{**defaults, **context})


@functools.cache
def templates() -> Environment:
    """One for a process, which compiles each template once: a live report is written again and
    again."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        loader=PackageLoader("trueloop.run", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _write(page: Path, text: str) -> None:
    try:
        page.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(page, error) from None
    write_atomic(page, text.encode("utf-8", "replace"))
