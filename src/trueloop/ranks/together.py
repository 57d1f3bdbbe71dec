"""Work whose failure on one rank is a failure on all of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from trueloop.errors import RankError, TrueloopError
from trueloop.ranks.collectives import from_main, gathered
from trueloop.ranks.group import is_distributed, is_main, rank

T = TypeVar("T")


def on_main(work: Callable[[], T], what: str) -> T:
    """The result of `work()` on rank 0, on every rank; the others do not call it.

    What it returns can be pickled. Its error is raised on all ranks. `what` names the wait of the
    others. In one process it is `work()`.
    """
    if not is_distributed():
        return work()
    failure: Exception | None = None
    found: Any = None
    if is_main():
        try:
            found = work()
        except Exception as error:  # every rank has to learn of it
            failure = error
    found, failure_there = from_main((found, failure_of(failure)), what)
    if failure is not None:
        raise failure
    if failure_there is not None:
        raise failure_there
    return found  # type: ignore[no-any-return]


def on_all(work: Callable[[], T], what: str) -> T:
    """The result of `work()` on this rank, once all ranks have done it.

    An error on any of them is raised on all: on the others as that of the first rank that failed.
    In one process it is `work()`.
    """
    if not is_distributed():
        return work()
    failure: Exception | None = None
    found: Any = None
    try:
        found = work()
    except Exception as error:  # every rank has to learn of it
        failure = error
    failures = gathered(failure_of(failure), what)
    if failure is not None:
        raise failure
    first = next(filter(None, failures), None)
    if first is not None:
        raise first
    return found  # type: ignore[no-any-return]


def failure_of(error: Exception | None) -> TrueloopError | None:
    """The error as the other ranks raise it: the very same one of ours, or what a foreign one says
    (it may not survive the way between processes); None for None."""
    if error is None or isinstance(error, TrueloopError):
        return error
    why = " ".join(f"{type(error).__name__}: {error}".split())
    return RankError(f"rank {rank()} failed ({why[:300]}): see its traceback", rank())
