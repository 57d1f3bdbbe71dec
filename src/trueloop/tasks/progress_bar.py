"""A progress bar while data are read, on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from trueloop.seed import rng_preserved

_WORTH_A_BAR = 32 * 2**20


@contextmanager
def progress_bar(
    what: str, total: int, quiet: bool, *, worth: int = _WORTH_A_BAR
) -> Iterator[Callable[[int], object]]:
    """A bar named `what`, where there is much to read: a `total` of bytes (or of anything else) of
    `worth` or more. Yields a function to call with how many more have been read."""
    with rng_preserved():  # rich draws a random number when it is imported
        from rich.console import Console
        from rich.progress import Progress

    console = Console(stderr=True)
    show = not quiet and console.is_terminal and total >= worth
    with Progress(console=console, transient=True, disable=not show) as progress:
        bar = progress.add_task(what, total=total)
        yield lambda size: progress.advance(bar, size)
