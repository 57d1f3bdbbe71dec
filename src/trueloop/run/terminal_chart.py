"""Curves drawn with the dots of braille characters, for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from trueloop.formatting import number
from trueloop.run.charts import LOG_RATIO
from trueloop.run.log_reader import Floats

if TYPE_CHECKING:
    from rich.text import Text

_LABEL = 9
"""Characters of a number beside the y-axis."""
_BITS = np.array([[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]])
"""The dots of a braille character: four rows of two."""


@dataclass
class Curve:
    """A line of a chart; NaN are not part of it."""

    name: str
    x: Floats
    y: Floats
    style: str


def drawn(
    title: str, curves: Sequence[Curve], width: int, height: int, unit: str, *, log: bool = False
) -> list[Text]:
    """A chart as lines of text: its title with the names of the curves, rows of dots between the
    lowest and the highest value, and the ends of the x-axis. `log` puts y on a log axis where its
    values are positive and span more than a chart would show.

    Each column of dots spans the lowest to the highest value there, so that no spike is lost.
    """
    from rich.text import Text

    head = Text(title, style="bold", no_wrap=True)
    for curve in curves:
        if len(curves) > 1:
            head.append(f"  {curve.name}", style=curve.style)
    rows, columns = max(1, height - 2), max(4, width - _LABEL - 1)
    lines = [(c, *_finite(c)) for c in curves]
    x0, x1 = _span([x for _, x, _ in lines])
    y0, y1 = ends = _span([y for _, _, y in lines])
    if log and y0 > 0 and y1 > LOG_RATIO * y0:
        lines = [(c, x, np.log10(y)) for c, x, y in lines]
        y0, y1 = np.log10(ends)
    cells = np.zeros((rows, columns), dtype=np.int64)
    styles = np.full((rows, columns), -1)
    for k, (_, x, y) in enumerate(lines):
        if len(x):
            dots = _dots((x - x0) / (x1 - x0), (y - y0) / (y1 - y0), 4 * rows, 2 * columns)
            mine = (dots.reshape(rows, 4, columns, 2).transpose(0, 2, 1, 3) * _BITS).sum((2, 3))
            cells |= mine
            styles[mine > 0] = k
    text = [head]
    for row in range(rows):
        label = number(ends[1]) if row == 0 else number(ends[0]) if row == rows - 1 else ""
        line = Text(f"{label[:_LABEL]:>{_LABEL}} ", style="dim", no_wrap=True)
        for cell, style in zip(cells[row], styles[row], strict=True):
            line.append(chr(0x2800 + cell) if cell else " ", curves[style].style if cell else "")
        text.append(line)
    left, right = f"{unit} {x0:,.0f}", f"{x1:,.0f}"
    foot = f"{'':{_LABEL}} {left}{right:>{max(1, columns - len(left))}}"
    return [*text, Text(foot[:width], style="dim", no_wrap=True)]


def _finite(curve: Curve) -> tuple[Floats, Floats]:
    whole = np.isfinite(curve.x) & np.isfinite(curve.y)
    return curve.x[whole], curve.y[whole]


def _span(parts: Sequence[Floats]) -> tuple[float, float]:
    """The lowest and the highest value, apart from each other; 0 and 1 without any."""
    joined = np.concatenate([np.empty(0), *parts])
    if not len(joined):
        return 0.0, 1.0
    low, high = float(joined.min()), float(joined.max())
    return (low, high) if high > low else (low - 0.5 * (abs(low) or 1), low + 0.5 * (abs(low) or 1))


def _dots(x: Floats, y: Floats, rows: int, columns: int) -> npt.NDArray[np.bool_]:
    """Which dots are set, the highest row first, for points of 0 to 1 with ascending x."""
    low, high = np.full(columns, np.nan), np.full(columns, np.nan)
    if len(x) < 2 * columns:
        first, last = (round(end * (columns - 1)) for end in (x[0], x[-1]))
        places = np.arange(first, last + 1)
        low[places] = high[places] = np.interp(places / (columns - 1), x, y)
    place = np.minimum((x * columns).astype(np.int64), columns - 1)
    starts = np.flatnonzero(np.diff(place, prepend=-1))
    own = place[starts]
    low[own] = np.fmin(low[own], np.minimum.reduceat(y, starts))
    high[own] = np.fmax(high[own], np.maximum.reduceat(y, starts))
    # A line goes on from column to column.
    low[1:], high[1:] = (
        np.where(np.isnan(high[:-1]), low[1:], np.fmin(low[1:], high[:-1])),
        np.where(np.isnan(low[:-1]), high[1:], np.fmax(high[1:], low[:-1])),
    )
    dots = np.zeros((rows, columns), dtype=bool)
    for column in np.flatnonzero(np.isfinite(low) & np.isfinite(high)):
        top = round((1 - high[column]) * (rows - 1))
        foot = round((1 - low[column]) * (rows - 1))
        dots[top : foot + 1, column] = True
    return dots
