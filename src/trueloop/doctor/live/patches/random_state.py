"""Global random generators: seeded, and put back to what they were."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.live.watcher import quietly
from trueloop.doctor.model.events import Seeded, Used

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.watcher import Watcher


def install(watcher: Watcher, patches: Patches) -> None:
    for owner in (torch, torch.random):
        patches.replace(owner, "manual_seed", lambda original: _seed(watcher, original, "torch"))
        # `fork_rng` puts the state back by calling it.
        patches.replace(owner, "set_rng_state", lambda original: _restored(watcher, original))
    patches.replace(random, "seed", lambda original: _seed(watcher, original, "random"))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        patches.replace(numpy.random, "seed", lambda original: _seed(watcher, original, "numpy"))


def _seed(watcher: Watcher, original: Any, library: str) -> Any:
    def seed(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if not is_compiling() and watcher.is_here:
            frame = sys._getframe(1)
            value = args[0] if args else next(iter(kwargs.values()), None)
            quietly(watcher, lambda: _seeded(watcher, library, value, frame))
        return result

    return seed


def _seeded(watcher: Watcher, library: str, value: Any, frame: Any) -> None:
    watcher.look(why=("seed", frame.f_code, frame.f_lasti))
    if watcher.looking:
        known = type(value) in (int, float, str)
        watcher.emit(
            Seeded,
            frame,
            lambda place, serial: {
                "by_rank": rank_identity.asked(source_map.written(place, 0, "seed"))
            },
            library=library,
            value=value if known else None,
            depends=not known,
        )


def _restored(watcher: Watcher, original: Any) -> Any:
    def set_rng_state(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        if not is_compiling() and watcher.looking and watcher.is_here:
            frame = sys._getframe(1)
            quietly(watcher, lambda: watcher.emit(Used, frame, what="torch.set_rng_state"))

    return set_rng_state
