"""When `fit` saves a run, and what of it is the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from trueloop import ranks
from trueloop.checkpoint import Checkpoints, WriteError, place_of
from trueloop.records import EvalRecord
from trueloop.step import Step

State = Callable[[], dict[str, Any]]


class RunSaver:
    """The saves of one `fit`; without `Checkpoints` there are none.

    `by_interval`: the user says how often; else what was not saved for some seconds is due.
    """

    def __init__(self, step: Step, checkpoints: Checkpoints | None, by_interval: bool) -> None:
        self._step = step
        self._checkpoints = checkpoints
        self.is_on = checkpoints is not None
        self._by_interval = by_interval
        self.is_due = False
        """A save is due by its interval."""
        self._saved: tuple[int, int, int] | None = None
        """The place of the last save."""
        self._best: dict[str, Any] | None = None
        """The entry of `best.json` for the evaluation just made, if it is the best."""

    @property
    def named(self) -> Mapping[str, Any] | None:
        """The user's values of `Checkpoints(..., state=...)`; None without checkpoints."""
        return None if self._checkpoints is None else self._checkpoints.state

    def begin(self, *, is_resumed: bool) -> None:
        """Begin a run, or resume a saved one."""
        if self._checkpoints is not None:
            here = place_of(self._step) if is_resumed else None
            if self._checkpoints.begin(here):
                self._saved = here  # to write it again could only harm it

    def how_to_resume(self) -> str:
        """The argument of `fit` with which a run that ends before its time is resumed; empty where
        nothing is saved."""
        if self._checkpoints is None or self._saved is None:
            return ""
        folder = str(self._checkpoints.folder)
        return f"resume with fit(..., resume_from=trueloop.load_checkpoint({folder!r}))"

    def poll(self) -> None:
        """After each update: look after a write that is under way."""
        if self._checkpoints is not None:
            self._checkpoints.poll()

    def prepare(self, state: State) -> None:
        """After an update that is not saved: prepare the next save."""
        if self._checkpoints is not None:
            self._checkpoints.prepare(state)

    def note_best(self, record: EvalRecord, *, is_saved: bool) -> None:
        """The evaluation is the best so far; `is_saved`: the weights that it is of are saved."""
        if self._checkpoints is None or not self._checkpoints.keep_best:
            return
        self._best = {"epoch": record.epoch, "update": record.update, "scores": record.scores}
        if is_saved:
            self._checkpoints.mark_best(place_of(self._step), self._best)

    def has_something(self) -> bool:
        """After an evaluation or an epoch: whether the best weights, or what is due, are to be
        saved."""
        if self._checkpoints is None:
            return False
        due = self.is_due or self._best is not None
        if not due and not self._by_interval:
            due = self._checkpoints.is_due(updates=self._step.updates, epochs=self._step.epoch)
        return due

    def save(self, state: State, sinks: Iterable[Any]) -> None:
        """Write everything from which this run resumes as itself, unless that is done."""
        self.is_due = False
        if self._checkpoints is None:
            return
        best, self._best = self._best, None
        if self._saved == place_of(self._step):
            if best is not None:  # of a state that was saved before its evaluation
                self._checkpoints.mark_best(self._saved, best)
            return
        self._saved = place_of(self._step)
        try:
            ranks.on_all(lambda: _flush(sinks), "the writing of the log")
        except WriteError as error:
            # A run cannot resume from a state that the log does not reach.
            self._checkpoints.record_failure(error)
            return
        self._checkpoints.save(state(), self._saved, best)

    def wait(self) -> None:
        """Until all is written."""
        if self._checkpoints is not None:
            self._checkpoints.wait()


def _flush(sinks: Iterable[Any]) -> None:
    for sink in sinks:
        flush = getattr(sink, "flush", None)
        if flush is not None:
            flush()
