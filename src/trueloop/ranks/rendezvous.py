"""How the ranks of one start find each other in a store that may have the last start's keys.

`torchrun` keeps one store over its restarts, and passes to the processes neither the number of the
start (each host counts its own) nor that keys of dead processes are in there. So rank 0 draws a
name for this start, and gives it to each rank that has asked with its own name.
"""

from __future__ import annotations

import time
import uuid
from datetime import timedelta

from torch.distributed import PrefixStore, Store  # type: ignore[attr-defined]

from trueloop.errors import RankError

_PAUSES = (0.002, 0.05)


def met(
    found: Store, rank: int, world_size: int, timeout: timedelta, *, complete: bool = True
) -> Store:
    """The part of the store that belongs only to this start, when all ranks have come.

    Raises `RankError` if one has not within `timeout`; without `complete`, only rank 0 is needed.
    """
    names = PrefixStore("trueloop/meeting", found)
    if rank == 0:
        name = _given_out(names, world_size, timeout, complete)
    else:
        name = _asked(names, rank, timeout)
    return PrefixStore(f"trueloop/{name}", found)


def _given_out(names: Store, world_size: int, timeout: timedelta, complete: bool) -> str:
    """Rank 0: draw the name and give it to all others."""
    name, deadline = uuid.uuid4().hex, time.monotonic() + timeout.total_seconds()
    served: dict[int, bytes] = {}
    pause, most = _PAUSES
    while names.add(f"has/{name}", 0) < world_size - 1:
        for other in range(1, world_size):
            if names.check([f"asks/{other}"]):
                asked = names.get(f"asks/{other}")
                if served.get(other) != asked:  # what a dead process had asked is replaced
                    served[other] = asked
                    names.set(f"gets/{asked.decode()}", name)
        if time.monotonic() > deadline:
            if not complete:
                break
            missing = [str(other) for other in range(1, world_size) if other not in served]
            raise RankError(_absent(f"rank {', '.join(missing) or 1}", timeout))
        time.sleep(pause)
        pause = min(2 * pause, most)
    for asked in served.values():
        names.delete_key(f"gets/{asked.decode()}")
    return name


def _asked(names: Store, rank: int, timeout: timedelta) -> str:
    """Every other rank: ask for the name."""
    mine = uuid.uuid4().hex
    names.set(f"asks/{rank}", mine)
    try:
        names.wait([f"gets/{mine}"], timeout)
    except RuntimeError as error:
        raise RankError(_absent("rank 0", timeout)) from error
    name: str = names.get(f"gets/{mine}").decode()
    names.add(f"has/{name}", 1)
    return name


def _absent(who: str, timeout: timedelta) -> str:
    seconds = timeout.total_seconds()
    length = f"{seconds / 60:.0f} minutes" if seconds >= 120 else f"{seconds:.0f} seconds"
    return (
        f"{who} has not come within {length}: look at its output, and start all processes with "
        "torchrun"
    )
