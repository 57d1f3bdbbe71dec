"""The thread of each rank that looks after the others while the main thread computes or waits.

It says in the store that this rank lives and what it does, learns there of a failure or a stop on
any other rank, notices that a process on this machine has died, and ends this process where its
main thread does not come out of a collective that the dead will never join.
"""

from __future__ import annotations

import os
import threading
import time
from contextlib import suppress
from typing import Any

import torch.distributed as dist
from torch.distributed import Store  # type: ignore[attr-defined]

from trueloop.errors import RankError, TrueloopError
from trueloop.ranks import failure, heartbeat
from trueloop.ranks.failure import RankFailure
from trueloop.ranks.heartbeat import Beat
from trueloop.ranks.progress import here

# A failure is known to all in at most _BEAT_SECONDS; together with these, a run ends within 20 s.
_LOOK_SECONDS = 0.25
_BEAT_SECONDS = 1.0
_FROM_A_COLLECTIVE_SECONDS = 4.0
_FROM_ELSEWHERE_SECONDS = 8.0
_FROM_THE_END_SECONDS = 120.0
"""A rank that writes the last report of a run that has failed."""
_SEARCH_SECONDS = 4.0
_LEFT_SECONDS = 1.0
_STAGGER_SECONDS = 0.002
_MOST_SECONDS = 5.0
"""For an answer of the store, whose host may be gone."""


class RankWatcher:
    """Looks after the other ranks from `start` to `end` or `leave`."""

    def __init__(self, store: Store, rank: int, world_size: int, on_host: range) -> None:
        self.rank, self.world_size = rank, world_size
        self.stop_signal: int | None = None
        self._stops = 0
        """Runs of this group that all ranks have ended for a signal."""
        self._stop_lock = threading.Lock()
        """The signal that a rank has got; all are to end for it."""
        self.lost = False
        """The store does not answer any more."""
        self._store = store
        self.shared = store.clone() if hasattr(store, "clone") else store
        """For threads: that of the main thread may be blocked in a wait."""
        # At 10,000 ranks the store's host would be busy with nothing else.
        self.every = max(_BEAT_SECONDS, world_size / 1000)
        self._count = 0
        self._beat_at = 0.0
        self._alarms = 0
        self._failed_at = 0.0
        self._unmet = {each for each in on_host if each != rank}
        self._neighbours: dict[int, Beat] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._run, name="trueloop-ranks", daemon=True)

    def start(self) -> None:
        heartbeat.put(self._store, heartbeat.own(self.rank, 0, {}))
        self._thread.start()

    def end(self) -> None:
        """This rank comes out of the group in good order."""
        self._done.set()
        self._thread.join(_MOST_SECONDS)
        with suppress(RuntimeError):
            heartbeat.put(self._store, heartbeat.own(self.rank, self._count + 1, {}, left=True))

    def leave(self, error: BaseException) -> BaseException:
        """The exception to raise instead of `error`, which has come out of the group's block.

        It is the error itself on the rank that is to say it, and a silent `SystemExit` on all
        others; if the error only shows that a different rank is gone, a `RankError` names that one.
        """
        if isinstance(error, SystemExit) and not error.code:
            self.end()
            return error
        self._done.set()
        found: list[BaseException] = []
        asking = threading.Thread(target=lambda: found.append(self._settled(error)), daemon=True)
        asking.start()
        asking.join(_SEARCH_SECONDS + 2 * _MOST_SECONDS)
        failure.end_for_certain()
        return found[0] if found else error

    def _settled(self, error: BaseException) -> BaseException:
        try:
            return self._instead(error)
        except RuntimeError:  # the store has gone with its host: each rank is by itself
            failure.learn(RankFailure(self.rank, failure.words_of(error), 1), mine=True)
            return error

    def _instead(self, error: BaseException) -> BaseException:
        store = self._store.clone() if hasattr(self._store, "clone") else self._store
        message, status = failure.words_of(error), failure.status_of(error)
        failure.report_mistake(store, self.rank, message)
        if isinstance(error, RankError) and error.rank not in (None, self.rank):
            failure.wait_for_another(store)  # that rank has the traceback
        if failure.look(store) is None and not isinstance(error, SystemExit):
            dead = self._missing(store, wait=failure.is_of_a_peer(error))
            if dead is not None and failure.claim(store, dead):
                return RankError(dead.message)
        if failure.known is None and failure.claim(store, RankFailure(self.rank, message, status)):
            failure.is_everyones = isinstance(error, TrueloopError) and failure.all_raise(
                store, self.rank, self.world_size, message
            )
            if not failure.is_everyones and not isinstance(error, KeyboardInterrupt):
                error.add_note(f"(on rank {self.rank} of {self.world_size})")
            return error
        assert failure.known is not None
        if not failure.is_mine:
            failure.linger(store, lambda rank: self._is_gone(store, rank))
        return SystemExit(failure.known.status)

    def all_raise(self, error: BaseException) -> bool:
        """Whether all ranks raise this error at about this moment."""
        message = failure.words_of(error)
        try:
            return failure.all_raise(self._store, self.rank, self.world_size, message)
        except RuntimeError:  # the store has gone with its host
            return False

    def ask_to_stop(self, number: int) -> None:
        """Let all ranks know that this one has got a signal."""
        with self._stop_lock:
            if self.stop_signal is not None:
                return
            self.stop_signal, key = number, self._stop_key()
        with suppress(RuntimeError):
            self.shared.compare_set(key, "", str(number))
            self.alarm()

    def has_stopped(self) -> None:
        """All ranks have ended a run for the signal: it does not end the next one."""
        with self._stop_lock:
            self.stop_signal = None
            self._stops += 1
            self._alarms = -1  # another rank may already have asked for the end of the next one

    def _stop_key(self) -> str:
        return f"stop/{self._stops}"

    def _hear_of_stop(self) -> None:
        """Read the signal of a different rank."""
        key = self._stop_key()
        if self.stop_signal is None and self.shared.check([key]):
            number = int(self.shared.get(key))
            with self._stop_lock:
                if key == self._stop_key():
                    self.stop_signal = number

    def fail(self, found: RankFailure) -> None:
        """End the run for a failure that a thread has found, unless there is one already."""
        if failure.claim(self.shared, found):
            print_line(found.message)
            self.shared.set("said", "1")

    def beats(self) -> dict[int, Beat]:
        """The last sign of life of each rank."""
        return heartbeat.read(self.shared, list(range(self.world_size)))

    def look(self) -> None:
        """Read a failure from the store."""
        with suppress(RuntimeError):
            failure.look(self.shared)

    def alarm(self) -> None:
        """Let all ranks look into the store."""
        self.shared.add("alarms", 1)

    def _run(self) -> None:
        while not self._done.wait(_LOOK_SECONDS):
            try:
                if not self.lost:
                    self._look()
            except RuntimeError:
                self.lost = True
            self._end_if_left_behind()

    def _look(self) -> None:
        now = time.monotonic()
        if failure.known is None:
            dead = self._dead_neighbour()
            if dead is not None:
                self.fail(dead)
        if now - self._beat_at < self.every:
            return
        self._beat_at, self._count = now, self._count + 1
        heartbeat.put(self.shared, heartbeat.own(self.rank, self._count, calls()))
        if self._unmet:
            self._meet_neighbours()
        alarms = self.shared.add("alarms", 0)
        if alarms == self._alarms:
            return
        self._alarms = alarms
        failure.look(self.shared)
        self._hear_of_stop()

    def _end_if_left_behind(self) -> None:
        """End the process if its main thread does not leave a run that has failed."""
        if failure.known is None:
            return
        now = time.monotonic()
        self._failed_at = self._failed_at or now
        if here.phase == "ending":
            most = _FROM_THE_END_SECONDS
        else:
            most = _FROM_ELSEWHERE_SECONDS if here.pending is None else _FROM_A_COLLECTIVE_SECONDS
        if now - self._failed_at > most and not self._done.is_set():
            os._exit(failure.known.status or 1)

    def _meet_neighbours(self) -> None:
        """Find out which ranks run on this machine.

        Each rank asks only for those of its own host: for all, 10,000 ranks would ask the one store
        for 100 million signs of life.
        """
        beats, host = heartbeat.read(self.shared, sorted(self._unmet)), heartbeat.this_host()
        self._unmet -= set(beats)
        self._neighbours |= {rank: beat for rank, beat in beats.items() if beat.host == host}

    def _dead_neighbour(self) -> RankFailure | None:
        for rank, beat in list(self._neighbours.items()):
            if heartbeat.state_of(beat) != "gone":
                continue
            last = heartbeat.read(self.shared, [rank])[rank]
            if not last.left:
                return _death(last)
            del self._neighbours[rank]
        return None

    def _missing(self, store: Store, *, wait: bool) -> RankFailure | None:
        """Another rank that has died, or left while this one still waits for it; None if all are
        there. With `wait`, a rank of a different machine is given time for a sign of life."""
        if wait:  # of thousands of ranks one is to ask the store about all, and not each
            time.sleep(min(self.rank * _STAGGER_SECONDS, _SEARCH_SECONDS))
            if failure.look(store) is not None:
                return None
        others = [rank for rank in range(self.world_size) if rank != self.rank]
        first, now = heartbeat.read(store, others), time.monotonic()
        deadline = now + (max(_SEARCH_SECONDS, 2.5 * self.every) if wait else 0.0)
        while True:
            if failure.look(store) is not None:
                return None
            beats = heartbeat.read(store, others)
            for beat in beats.values():
                if heartbeat.state_of(beat) == "gone" and not beat.left:
                    return _death(beat)
            if any(beat.left for beat in beats.values()):
                deadline = min(deadline, now + _LEFT_SECONDS)
            if time.monotonic() >= deadline:
                break
            time.sleep(0.1)
        if not wait:
            return None
        for rank, beat in beats.items():
            if beat.left:
                return RankFailure(
                    rank, f"{beat.who} has ended its work while others waited for it", 1
                )
            if heartbeat.state_of(beat) == "elsewhere" and beat.count == first[rank].count:
                return _death(beat)
        return None

    def _is_gone(self, store: Store, rank: int) -> bool:
        beat = heartbeat.read(store, [rank]).get(rank)
        return beat is not None and heartbeat.state_of(beat) == "gone"


def _death(beat: Beat) -> RankFailure:
    return RankFailure(
        beat.rank,
        f"{beat.who} died without a message (last seen {beat.place}): it was killed, or memory ran "
        "out; look at its exit status and at dmesg",
        failure.FAILED,
    )


def calls() -> dict[str, int]:
    """How many collectives this rank has entered, by process group."""
    found: dict[str, int] = {}
    if not dist.is_initialized():
        return found
    groups: dict[Any, str] = getattr(dist.distributed_c10d._world, "pg_names", {})
    for group, name in list(groups.items()):
        with suppress(RuntimeError):  # a backend that does not count them
            found[name] = group._get_sequence_number_for_group()
    return found


def print_line(message: str) -> None:
    """One line about a failure, also while the main thread is blocked."""
    with suppress(OSError):
        os.write(2, f"trueloop: error: {message}\n".encode())
