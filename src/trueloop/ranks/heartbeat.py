"""Signs of life: what each rank says of itself in the store, and which processes are gone."""

from __future__ import annotations

import json
import os
import socket
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch.distributed import Store  # type: ignore[attr-defined]

from trueloop.ranks.progress import here


@dataclass(frozen=True)
class Beat:
    """A rank's last report about itself."""

    rank: int
    count: int
    """Grows with every sign of life: two readings with the same count are of a silent rank."""
    pid: int
    host: str
    """The machine (and the namespace of its process numbers), in which `pid` has its meaning."""
    started: str
    """When the process began, by its machine's clock: process numbers are used again."""
    phase: str
    epoch: int
    batch: int
    update: int
    pending: str | None
    still: float
    """Seconds since it last did anything, when it said this."""
    left: bool = False
    """It has come out of the process group in good order."""
    calls: dict[str, int] = field(default_factory=dict)
    """How many collectives it has entered, by process group."""

    @property
    def who(self) -> str:
        return f"rank {self.rank} (process {self.pid} on {self.host.partition(':')[0]})"

    @property
    def place(self) -> str:
        """Its activity, in words."""
        where = f"{self.phase}, epoch {self.epoch + 1}, batch {self.batch}, update {self.update}"
        return where if self.pending is None else f"{where}, in: {self.pending}"


def own(rank: int, count: int, calls: dict[str, int], *, left: bool = False) -> Beat:
    """The sign of life of this process."""
    pid = os.getpid()
    return Beat(
        rank,
        count,
        pid,
        this_host(),
        _started(pid),
        here.phase,
        here.epoch,
        here.batch,
        here.update,
        here.pending,
        round(time.monotonic() - here.moved, 1),
        left,
        calls,
    )


def put(store: Store, beat: Beat) -> None:
    store.set(f"beat/{beat.rank}", json.dumps(asdict(beat)))


def read(store: Store, ranks: list[int]) -> dict[int, Beat]:
    """The last sign of life of each of `ranks` that has given one."""
    found: dict[int, Beat] = {}
    for rank in ranks:
        if store.check([f"beat/{rank}"]):
            fields: dict[str, Any] = json.loads(store.get(f"beat/{rank}"))
            found[rank] = Beat(**fields)
    return found


def state_of(beat: Beat) -> str:
    """`alive`, `stopped` or `gone`, of a process on this machine; `elsewhere` on a different one.

    A process that has ended and was not waited for counts as gone.
    """
    if beat.host != this_host():
        return "elsewhere"
    fields = _stat(beat.pid)
    if fields is None:
        return "gone" if _is_gone(beat.pid) else "alive"
    if fields[0] in "ZX" or (beat.started and fields[19] != beat.started):
        return "gone"
    return "stopped" if fields[0] in "Tt" else "alive"


def this_host() -> str:
    """A name that is the same for all processes that can see each other's numbers."""
    try:
        space = os.readlink("/proc/self/ns/pid")
    except OSError:  # not Linux
        space = ""
    return f"{socket.gethostname()}:{space}"


def _started(pid: int) -> str:
    fields = _stat(pid)
    return "" if fields is None else fields[19]


def _stat(pid: int) -> list[str] | None:
    """The fields of /proc/PID/stat after the program's name: state, parent, …; None without."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    return text.rpartition(")")[2].split()


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
