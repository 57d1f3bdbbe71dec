"""What a row of the tables of wrong calls is, and what each of them has to show.

A wrong call raises a class of `errors.py` with one line that names the argument or the cause and
goes on with what to write; where the documents say what happens instead, the row is a function that
asserts it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

from trueloop.errors import UserError


class Wrong(NamedTuple):
    """One wrong call."""

    call: Callable[[], Any]
    error: type[UserError]
    cause: str
    """What the message names."""
    remedy: str
    """What it says to write, after its first colon."""


def check(row: Wrong) -> None:
    """The call raises the error that the row says, on one line."""
    assert row.error is not UserError, "a row names one of the classes below it"
    kind, message = _raised_by(row.call)
    assert kind is not None, "nothing was raised"
    assert issubclass(kind, row.error), f"{kind.__name__}: {message}"
    assert "\n" not in message
    assert len(message) <= 400, message
    assert row.cause in message, message
    assert row.remedy in message.partition(": ")[2], message


def _raised_by(call: Callable[[], Any]) -> tuple[type[Exception] | None, str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of torch's, about what is made up here
        try:
            call()
        except Exception as error:
            # Not the exception itself, whose traceback would keep a feed's workers waiting.
            return type(error), str(error)
    return None, ""
