"""The display of `fit(progress=True)`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from trueloop import ranks
from trueloop.display import ProgressDisplay, screen_of_fit
from trueloop.loop.clock import EVALUATION
from trueloop.loop.fit_state import FitState, Sink

_ALL_OF = 50
"""Evaluations of a run that each have a line; of more, about ten, or one in 10 s."""


@contextmanager
def progress_of(state: FitState, wanted: bool) -> Iterator[list[Sink]]:
    """The sinks that show the run: on the main rank one, where it is wanted and there is where to
    show it."""
    screen = screen_of_fit() if wanted and ranks.is_main() else None
    if screen is None:
        yield []
        return
    length, every, train = state.clock.length, state.clock.intervals[EVALUATION], state.train
    display = ProgressDisplay(
        **{length.unit: int(length.amount)},
        by_epochs=every is None or every.unit == "epochs",
        batches=len(train) if train.has_length else None,
        monitor=state.history.monitor,
        all_of=_ALL_OF,
        screen=screen,
    )
    with display:
        yield [display]
        history = state.history
        ended = history.status in ("finished", "stopped early")
        how = "" if ended else state.saver.how_to_resume()
        display.end(history.status, history.updates, history.seconds, history.reason, how)
