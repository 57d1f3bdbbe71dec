"""Detection of hangs: the position of each rank, and which rank the others wait for.

A thread of each rank looks at `ranks.here`. When nothing has been done for too long, every rank
writes its Python stacks and what it is doing to `hangs/TIME/rank-K.txt` in the run directory, and
the lowest rank that lives writes `summary.txt` and prints one line.
"""

from __future__ import annotations

import faulthandler
import json
import os
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import torch

from trueloop import _options, ranks
from trueloop.errors import ConfigError
from trueloop.ranks import failure, heartbeat
from trueloop.ranks.heartbeat import Beat
from trueloop.ranks.rank_watcher import RankWatcher, calls
from trueloop.stopping.stuck_rank import Silence, verdict

FIRST_MINUTES = 20.0
"""Before the first update has ended: it may compile."""
LEAST_MINUTES, MOST_MINUTES = 5.0, 20.0
TIMES = 50
"""A hang is this many times as long as anything so far has taken."""

_LOOK_SECONDS = 1.0
_GATHER_SECONDS = 2.0
"""In which the other ranks write their part."""


@dataclass
class HangThreshold:
    """How long a run may make no progress before that is a hang."""

    minutes: float | None
    """As the user says; None for the default."""
    longest: float = 0.0
    """Seconds between two things that were done, at most so far."""
    updates: int = 0
    """Seen to end."""

    def limit(self, phase: str = "training") -> float:
        """Seconds. A write of a large state to a slow disk is given the longest default."""
        if self.minutes is not None:
            return 60 * self.minutes
        if not self.updates:
            return 60 * FIRST_MINUTES
        if phase in ("saving", "ending"):
            return 60 * MOST_MINUTES
        return min(max(60 * LEAST_MINUTES, TIMES * self.longest), 60 * MOST_MINUTES)


class HangWatch:
    """Within it, a hang of the run is written to `folder` and reported in one line. Progress is
    what the training notes in `ranks.here`: `fit` and `evaluate` do, for every batch and every
    save.

    Args:
        folder: the run directory; None to watch nothing.
        minutes: how long nothing may move. None: 20 minutes until the first update has ended, then
            50 times the longest that anything has taken, from 5 to 20 minutes.
        exits: end all ranks with status 1 after the report.
    """

    def __init__(
        self, folder: Path | None, *, minutes: float | None = None, exits: bool = False
    ) -> None:
        if minutes is not None:
            _options.positive("hang_minutes", minutes, "10")
        self._exits = _options.flag("hang_exit", exits)
        if folder is None and (minutes is not None or exits):
            raise ConfigError(
                f"{'hang_exit' if exits else 'hang_minutes'} is set without a run directory for "
                "the report of a hang: write fit(..., run=trueloop.Run.create('runs/one', "
                "config={}))"
            )
        self._folder = folder
        self._pace = HangThreshold(minutes)
        self._look = _LOOK_SECONDS if minutes is None else min(_LOOK_SECONDS, 6 * minutes)
        self._number = 0
        """Hangs so far."""
        self._stamp: str | None = None
        """When the one began that is still to be reported."""
        self._watcher: RankWatcher | None = None
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._keep_watch, name="trueloop-hangs", daemon=True)

    def __enter__(self) -> HangWatch:
        if self._folder is not None:
            self._watcher = ranks.watcher_of_group()
            ranks.here.move()
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._folder is not None and threading.current_thread() is not self._thread:
            self._thread.join(2 * self._look)

    def _keep_watch(self) -> None:
        """Look now and then whether anything has moved."""
        moved, update, woke, reported = ranks.here.moved, ranks.here.update, time.monotonic(), False
        since = moved
        while not self._over.wait(self._look):
            now = time.monotonic()
            if now - woke > self._look + 5.0:
                since = now  # the whole process was stopped, and did not hang
            woke = now
            if ranks.here.moved != moved:
                self._pace.longest = max(self._pace.longest, ranks.here.moved - moved)
                self._pace.updates += ranks.here.update != update
                moved, update, reported = ranks.here.moved, ranks.here.update, False
                since = max(since, moved)
            with suppress(RuntimeError):  # the store has gone with its host
                if not reported and now - since > self._pace.limit(ranks.here.phase):
                    self._declare()
                    reported = True
                if self._is_declared():
                    reported = True
                    self._report()

    def _declare(self) -> None:
        """Have every rank write its position and stacks."""
        stamp = time.strftime("%Y%m%d-%H%M%S")
        if self._watcher is None:
            self._stamp = stamp
        else:
            self._watcher.shared.compare_set(f"hang/{self._number}", "", stamp)

    def _is_declared(self) -> bool:
        if self._watcher is None:
            return self._stamp is not None
        store = self._watcher.shared
        if not store.check([f"hang/{self._number}"]):
            return False
        self._stamp = store.get(f"hang/{self._number}").decode()
        return True

    def _report(self) -> None:
        """Write this rank's part; and, on the lowest rank that lives, the summary."""
        stamp, self._stamp = self._stamp, None
        assert self._folder is not None
        assert stamp is not None
        folder, rank = self._folder / "hangs" / stamp, ranks.rank()
        text = stacks()
        written = _write(folder, f"rank-{rank}.txt", text)
        trace = flight_recording()
        if trace is not None:
            _write(folder, f"rank-{rank}.flight.json", trace)
        if self._watcher is None:
            self._conclude(folder, {0: heartbeat.own(0, 1, {})}, {}, [])
            return
        key, self._number = f"hang/{self._number}", self._number + 1
        store = self._watcher.shared
        store.set(f"{key}/{rank}", "" if written else text)
        time.sleep(_GATHER_SECONDS)
        if any(store.check([f"{key}/{lower}"]) for lower in range(rank)):
            return
        before = self._watcher.beats()
        time.sleep(2.5 * self._watcher.every)
        beats, without = self._watcher.beats(), []
        silent: dict[int, Silence] = {}
        for each in range(ranks.world_size()):
            if not store.check([f"{key}/{each}"]):
                without.append(each)
            elif sent := store.get(f"{key}/{each}").decode():
                _write(folder, f"rank-{each}.txt", sent)
            if each not in beats:
                silent[each] = "absent"
            elif each in before and beats[each].count == before[each].count:
                silent[each] = heartbeat.state_of(beats[each])
        self._conclude(folder, beats, silent, without)

    def _conclude(
        self, folder: Path, beats: dict[int, Beat], silent: dict[int, Silence], without: list[int]
    ) -> None:
        """Write the summary and say it in one line; end the run if that is asked for."""
        rank, words = verdict(beats, silent)
        still = time.monotonic() - ranks.here.moved
        length = f"{still / 60:.0f} minutes" if still >= 120 else f"{still:.0f} seconds"
        lines = [f"nothing has moved for {length}: {words}", ""]
        lines += [f"{beat.who}: {beat.place}" for _, beat in sorted(beats.items())]
        lines += [f"rank {each} has written no stacks" for each in without]
        _write(folder, "summary.txt", "\n".join(lines) + "\n")
        message = f"nothing has moved for {length}: {words}; stacks: {folder}"
        if not self._exits:
            _print(f"trueloop: warning: {message}")
        elif self._watcher is None:
            _print(f"trueloop: error: {message}")
            os._exit(failure.FAILED)
        else:
            self._watcher.fail(failure.RankFailure(rank, message, failure.FAILED))


def stacks() -> str:
    """This process's activity: its place, and the Python stacks of all its threads."""
    rank = ranks.rank()
    beat = heartbeat.own(rank, 0, calls())
    with TemporaryFile("w+", encoding="utf-8") as file:
        faulthandler.dump_traceback(file, all_threads=True)
        file.seek(0)
        dumped = file.read()
    named = "\n".join(f"{thread.ident:#018x}  {thread.name}" for thread in threading.enumerate())
    return (
        f"{beat.who}\n{beat.place}\nnothing done for {beat.still:.0f} s\n"
        f"collectives entered, by process group: {json.dumps(beat.calls)}\n\n"
        f"threads\n{named}\n\n{dumped}"
    )


def flight_recording() -> str | None:
    """The last collectives of this rank as torch has recorded them, as JSON; None without any."""
    module: Any = torch._C._distributed_c10d if torch.distributed.is_available() else None
    dump = getattr(module, "_dump_fr_trace_json", None)
    if dump is None or not ranks.is_distributed():
        return None
    try:
        text: str = dump().decode()
    except RuntimeError:  # the recorder is off
        return None
    return text


def _write(folder: Path, name: str, text: str) -> bool:
    """Whether the run directory is there for this rank to write to."""
    try:
        if not folder.parent.parent.is_dir():
            return False
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    except OSError:
        return False
    return True


def _print(line: str) -> None:
    with suppress(OSError):
        os.write(2, f"{line}\n".encode())
