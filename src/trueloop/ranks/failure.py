"""The effect of one rank's failure on the others: which rank reports it, once, and how each rank
leaves."""

from __future__ import annotations

import json
import os
import signal
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing import util

import torch.distributed as dist
from torch.distributed import Store  # type: ignore[attr-defined]

from trueloop.errors import NonFiniteError, UserError, shortened

FAILED, MISTAKE = 1, 2

# Of gloo and nccl, where another rank is gone.
_WORDS_OF_PEERS = ("gloo/", "Connection closed by peer", "Connection reset by peer", "NCCL")
_ALIKE_SECONDS = 1.0
_LINGER_SECONDS = 5.0
_AFTER_EXIT_SECONDS = 10


@dataclass(frozen=True)
class RankFailure:
    """Why a run on many ranks ends."""

    rank: int
    message: str
    """One line."""
    status: int
    """The exit status of all ranks."""


known: RankFailure | None = None
"""The one that ends this run, once any rank has claimed it."""
is_mine = False
"""Whether this rank is the one that says it."""
is_everyones = False
"""Whether all ranks have said the same, so that it does not belong to a single rank."""


def learn(failure: RankFailure, *, mine: bool = False) -> None:
    global known, is_mine
    if known is None:
        known, is_mine = failure, mine


def forget() -> None:
    """As at the start: of a second group in one process."""
    global known, is_mine, is_everyones
    known, is_mine, is_everyones = None, False, False


def speaks() -> bool:
    """Whether this process is the one to say why the run ends: of many ranks, only one is."""
    if known is not None:
        return is_mine
    return os.environ.get("WORLD_SIZE", "1") == "1" or os.environ.get("RANK", "0") == "0"


def prefix() -> str:
    """`rank 1: `, where the failure is that of one rank; else empty."""
    own = os.environ.get("RANK", "0").strip()
    if known is None or not is_mine or is_everyones or str(known.rank) != own:
        return ""
    return f"rank {own}: "


def claim(store: Store, failure: RankFailure) -> bool:
    """Whether this failure is the first; if it is not, the first is then `known`."""
    # Two ranks may see one death.
    text = json.dumps({"by": uuid.uuid4().hex, **asdict(failure)})
    first = store.compare_set("failure", "", text).decode()
    if first == text:
        learn(failure, mine=True)
        store.add("alarms", 1)
        util.Finalize(None, _reported, (store,), exitpriority=-1000)
    else:
        learn(_read(first))
    return is_mine


def look(store: Store) -> RankFailure | None:
    """The failure that a rank has claimed; None if there is none."""
    if known is None and store.check(["failure"]):
        learn(_read(store.get("failure")))
    return known


def _read(text: str | bytes) -> RankFailure:
    fields = json.loads(text)
    return RankFailure(fields["rank"], fields["message"], fields["status"])


def words_of(error: BaseException) -> str:
    """One line about an exception."""
    text = " ".join(str(error).split())
    if not isinstance(error, (UserError, NonFiniteError)):
        text = f"{type(error).__name__}: {text}" if text else type(error).__name__
    return shortened(text)


def status_of(error: BaseException) -> int:
    """The exit status that an exception leads to."""
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else FAILED
    if isinstance(error, KeyboardInterrupt):
        return 128 + int(getattr(error, "signal", signal.SIGINT))
    return MISTAKE if isinstance(error, UserError) else FAILED


def is_of_a_peer(error: BaseException) -> bool:
    """Whether it is a collective's error, as after the death of a rank."""
    return any(
        isinstance(each, dist.DistError)
        or (isinstance(each, RuntimeError) and any(word in str(each) for word in _WORDS_OF_PEERS))
        for each in _chain(error)
    )


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that have led to it."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [each.__cause__, each.__context__]
        inner = getattr(each, "failures", None)  # of a distributed checkpoint, by rank
        if isinstance(inner, dict):
            todo += [part[0] for part in inner.values() if isinstance(part, tuple)]


def all_raise(store: Store, rank: int, world_size: int, message: str) -> bool:
    """Whether every rank raises this: they come to it at about the same moment."""
    report_mistake(store, rank, message)
    deadline = time.monotonic() + _ALIKE_SECONDS
    others = [f"mistake/{other}" for other in range(world_size) if other != rank]
    while time.monotonic() < deadline:
        if store.check(others):
            return all(store.get(key).decode() == message for key in others)
        if look(store) is not None and not is_mine:
            return False
        time.sleep(0.02)
    return False


def report_mistake(store: Store, rank: int, message: str) -> None:
    """Notify the rank that prints that this one makes the mistake too."""
    store.set(f"mistake/{rank}", message)


def wait_for_another(store: Store) -> None:
    """Give the rank that has the whole story time to be the first."""
    deadline = time.monotonic() + _ALIKE_SECONDS
    while time.monotonic() < deadline and look(store) is None:
        time.sleep(0.02)


def linger(store: Store, is_gone: Callable[[int], bool]) -> None:
    """Wait until the rank that says why the run ends has said it: the launcher ends all others as
    soon as one has left."""
    assert known is not None
    deadline = time.monotonic() + _LINGER_SECONDS
    with suppress(RuntimeError):  # the store has gone with its host
        while time.monotonic() < deadline and not is_gone(known.rank):
            if store.check(["said"]):
                time.sleep(0.3)
                return
            time.sleep(0.05)


def _reported(store: Store) -> None:
    with suppress(RuntimeError):
        store.set("said", "1")


def end_for_certain() -> None:
    """Let no destructor of a process group that waits for the dead block this process."""
    if hasattr(signal, "alarm"):
        util.Finalize(None, _alarm, exitpriority=-2000)


def _alarm() -> None:
    with suppress(ValueError):
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(_AFTER_EXIT_SECONDS)
