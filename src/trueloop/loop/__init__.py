"""fit: the loop around the step (`loop`), what it keeps about a run (`book`), and what it may be
given (`arguments`)."""

from trueloop.loop.book import History
from trueloop.loop.loop import fit

__all__ = ["History", "fit"]
