"""A rank that fails or dies ends all others, with one message."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from typing import Any

import pytest
import torch

from on_ranks import Ending, endings, on_ranks
from trueloop import ranks
from trueloop.cli._signals import Signals
from trueloop.errors import ConfigError, Interrupted, NonFiniteError
from trueloop.ranks import rank_watcher

SOON = 20.0


def _train(fails: Any, rank: int, when: int = 3) -> None:
    """Sums over all ranks, without an end; `fails()` on one of them at its third."""
    with ranks.joined(torch.device("cpu")):
        for update in range(10_000):
            ranks.here.move("training", update=update)
            if ranks.rank() == rank and update == when:
                fails()
            ranks.sum_over_ranks(torch.ones(2))
            time.sleep(0.01)


def _raise() -> None:
    raise ZeroDivisionError("in the middle of an update")


def _mistake() -> None:
    raise ConfigError("the file is not on this machine: copy it")


def _nan() -> None:
    raise NonFiniteError("the loss is NaN at update 4", update=3, epoch=0, batch=3)


def _memory() -> None:
    torch.empty(2**60)


def _leave() -> None:
    sys.exit(7)


def _interrupt() -> None:
    raise Interrupted(signal.SIGTERM)


def _said(ended: list[Ending]) -> str:
    """All that was written, of which one rank alone has written anything."""
    texts = [each.stderr for each in ended if each.stderr]
    assert len(texts) == 1, texts
    return texts[0]


def _check(ended: list[Ending]) -> None:
    assert all(each.seconds < SOON for each in ended)
    assert all(each.status not in (0, None) for each in ended), ended


@pytest.mark.parametrize(
    ("fails", "message"),
    [
        (_raise, "ZeroDivisionError: in the middle of an update"),
        (_mistake, "ConfigError: the file is not on this machine: copy it"),
        (_nan, "NonFiniteError: the loss is NaN at update 4"),
        (_memory, "alloc"),
    ],
)
@pytest.mark.parametrize("rank", [0, 1])
def test_an_exception_on_one_rank_is_raised_once(fails: Any, message: str, rank: int) -> None:
    ended = endings(2, _train, fails, rank)
    _check(ended)
    said = _said(ended)
    assert message in said
    assert said.count("Traceback (most recent call last)") == 1
    assert f"(on rank {rank} of 2)" in said
    assert ended[rank].stderr


def _all_ranks_fail() -> None:
    with ranks.joined(torch.device("cpu")):
        _mistake()


def test_a_mistake_that_all_ranks_make_is_nobodys_in_particular() -> None:
    ended = endings(3, _all_ranks_fail)
    _check(ended)
    said = _said(ended)
    assert "copy it" in said
    assert "on rank" not in said


def _kill_oneself() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _exit_at_once() -> None:
    os._exit(3)


@pytest.mark.parametrize(
    ("fails", "status"), [(_kill_oneself, -signal.SIGKILL), (_exit_at_once, 3)]
)
def test_a_rank_that_dies_is_named_by_one_other(fails: Any, status: int) -> None:
    ended = endings(3, _train, fails, 1)
    _check(ended)
    assert ended[1].status == status
    assert [each.status for each in (ended[0], ended[2])] == [1, 1]
    said = _said(ended)
    assert "rank 1 (process " in said
    assert "died without a message (last seen" in said


def _compute(rank: int) -> None:
    """One rank dies while the others compute, and wait for nobody."""
    rank_watcher._FROM_ELSEWHERE_SECONDS = 1.0
    with ranks.joined(torch.device("cpu")):
        ranks.barrier("the start")
        time.sleep(2.5)  # the thread gets to know the others
        if ranks.rank() == rank:
            os._exit(9)
        time.sleep(60.0)


def test_a_death_is_noticed_by_ranks_that_wait_for_nobody() -> None:
    ended = endings(2, _compute, 1)
    _check(ended)
    said = _said(ended)
    assert said.count("\n") == 1
    assert said.startswith("trueloop: error: rank 1 (process ")


def test_a_rank_that_leaves_ends_the_others_with_its_status() -> None:
    ended = endings(2, _train, _leave, 0)
    assert [each.status for each in ended] == [7, 7]
    assert not any(each.stderr for each in ended)


def test_an_interruption_of_one_rank_is_one_of_all() -> None:
    ended = endings(2, _train, _interrupt, 1)
    _check(ended)
    assert ended[0].status == 143
    assert not ended[0].stderr


def _too_early() -> None:
    with ranks.joined(torch.device("cpu")):
        ranks.barrier("the start")
        if ranks.rank() == 0:
            ranks.barrier("what only rank 0 asks for")


def test_a_rank_that_has_ended_before_the_others_is_named() -> None:
    ended = endings(2, _too_early)
    assert ended[1].status == 0
    assert ended[0].status == 1
    assert "rank 1 (process " in ended[0].stderr
    assert "has ended its work while others waited for it" in ended[0].stderr


def _before_joining(rank: int | None) -> None:
    try:
        if rank in (None, int(os.environ["RANK"])):
            _mistake()
        with ranks.joined(torch.device("cpu")):
            time.sleep(60.0)
    except ConfigError as error:
        ranks.fail_before_joining(error)
        if ranks.speaks():
            print(f"{ranks.prefix()}{error}", file=sys.stderr)
        sys.exit(2)


def test_a_mistake_before_the_ranks_have_met_is_said_once() -> None:
    ended = endings(3, _before_joining, None)
    assert [each.status for each in ended] == [2, 2, 2]
    assert _said(ended) == "the file is not on this machine: copy it\n"


@pytest.mark.parametrize("rank", [0, 1])
def test_a_mistake_of_one_rank_before_it_has_met_the_others_ends_them(rank: int) -> None:
    ended = endings(2, _before_joining, rank)
    _check(ended)
    assert _said(ended) == f"rank {rank}: the file is not on this machine: copy it\n"
    assert ended[1 - rank].status == 2


def _twice() -> list[float]:
    """A second start in the same store, as after torchrun's restart."""
    found = []
    for start in range(2):
        with ranks.joined(torch.device("cpu")):
            store = ranks.store()
            assert store is not None
            found.append(float(ranks.sum_over_ranks(torch.ones(1))))
            assert not store.check(["of this start"])
            ranks.barrier("a test")
            store.set("of this start", str(start))
    return found


def test_a_restart_in_the_same_store_sees_nothing_of_the_one_before() -> None:
    ended = endings(2, _twice)
    assert [(each.status, each.stderr) for each in ended] == [(0, ""), (0, "")]


def _told() -> Any:
    """Rank 1 gets a signal; the others learn of it while they wait for nobody."""
    if ranks.rank() == 1:
        ranks.ask_to_stop(signal.SIGUSR1)
    deadline = time.monotonic() + 10
    while ranks.stop_signal() is None and time.monotonic() < deadline:
        time.sleep(0.01)
    return ranks.stop_signal()


def test_a_stop_asked_for_on_one_rank_is_known_to_all() -> None:
    assert on_ranks(3, _told) == [signal.SIGUSR1] * 3


def _clean_up_slowly() -> None:
    """As a command that is reading its data when the scheduler, and then the launcher, ends it."""

    def work() -> int:
        ranks.launched_ranks()
        for seconds in (0.2, 0.8):
            threading.Timer(seconds, os.kill, [os.getpid(), signal.SIGTERM]).start()
        try:
            time.sleep(60.0)
        finally:
            time.sleep(1.2)
        return 0

    with Signals() as signals:
        sys.exit(signals.outlast(work))


def test_a_signal_that_the_launcher_repeats_is_one_and_said_once() -> None:
    ended = endings(2, _clean_up_slowly)
    assert [each.status for each in ended] == [143, 143]
    assert all(each.seconds > 1.2 for each in ended)
    assert _said(ended) == "trueloop: interrupted\n"
