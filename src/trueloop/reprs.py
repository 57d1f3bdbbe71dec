"""How objects show themselves: one short line, and tables in notebooks."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape


def described(value: object, *facts: str | None) -> str:
    """ "Feed(1,000 samples, batches of 32)": the class, and those facts that are not None."""
    return f"{type(value).__name__}({', '.join(fact for fact in facts if fact is not None)})"


def short(number: float) -> str:
    """Four significant digits: "0.6931", "1.2e-05", "nan"."""
    return f"{number:.4g}" if math.isfinite(number) else str(number)


def html_table(caption: str, head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table for a notebook, all of it escaped."""
    titles = "".join(f'<th scope="col">{escape(title)}</th>' for title in head)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return (
        f"<table><caption>{escape(caption)}</caption>"
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    )
