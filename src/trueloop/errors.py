"""What can go wrong, as a small tree.

`UserError` and everything below it is the user's to fix: its message is one line that names the
cause and ends with the remedy, and the command line prints that line alone, with exit status 2.
`NonFiniteError` is the training's own failure. Mistakes of ours are assertions, not these.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Iterable
from typing import Any


class TrueloopError(Exception):
    """The base of every error raised on purpose."""


class UserError(TrueloopError, ValueError):
    """Something that the user can fix: the message names the cause and the remedy."""


class ConfigError(UserError):
    """An option or an argument has a value that cannot work."""


class DataError(UserError):
    """The data is missing, malformed, or not what the task needs."""


class LossError(UserError):
    """The model's output and the target do not fit the loss."""


class ScheduleError(UserError):
    """The schedule does not fit the run."""


class RunError(UserError):
    """A run directory or a checkpoint cannot be used."""


class DeviceError(UserError):
    """The device asked for is not there or cannot do what is asked."""


class MissingDependencyError(UserError):
    """A library that an optional part needs is not installed."""


class NonFiniteError(TrueloopError, ArithmeticError):
    """The loss or a gradient is NaN or infinite.

    Attributes: `update` (how many updates were applied before), `epoch`, `batch` (the position of
    the micro-batch in its epoch) and `parameter` (the first one with a non-finite gradient, or
    None when the loss itself was non-finite).
    """

    def __init__(
        self,
        message: str,
        *,
        update: int,
        epoch: int,
        batch: int,
        parameter: str | None = None,
    ) -> None:
        super().__init__(message)
        self.update = update
        self.epoch = epoch
        self.batch = batch
        self.parameter = parameter

    def __reduce__(self) -> tuple[Any, ...]:
        # On its way between processes, an exception would lose what is keyword-only.
        return functools.partial(type(self), **vars(self)), self.args


def nearest(name: str, candidates: Iterable[str]) -> str:
    """The end of a message about an unknown name: the closest known ones, or all of them.

    Returns e.g. "did you mean 'price'?" or "known: 'a', 'b'"; empty when there are no candidates.
    """
    known = sorted(set(candidates))
    lowered = {candidate.lower(): candidate for candidate in known}
    close = [lowered[m] for m in difflib.get_close_matches(name.lower(), lowered, n=3, cutoff=0.5)]
    if close:
        return "did you mean " + " or ".join(repr(candidate) for candidate in close) + "?"
    if not known:
        return ""
    listed = ", ".join(repr(candidate) for candidate in known[:12])
    return f"known: {listed}" + (", …" if len(known) > 12 else "")
