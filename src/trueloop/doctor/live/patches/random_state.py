"""Global random generators: seeded, and put back to what they were."""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import torch
from torch.compiler import is_compiling

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.model.events import Seeded, Used

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    for owner in (torch, torch.random):
        patches.replace(owner, "manual_seed", lambda original: _seed(recorder, original, "torch"))
        # `fork_rng` puts the state back by calling it.
        patches.replace(owner, "set_rng_state", lambda original: _restored(recorder, original))
    patches.replace(random, "seed", lambda original: _seed(recorder, original, "random"))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        patches.replace(numpy.random, "seed", lambda original: _seed(recorder, original, "numpy"))


def _seed(recorder: Recorder, original: Any, library: str) -> Any:
    hub = recorder.hub

    def seed(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if not is_compiling() and hub.is_here:
            frame = sys._getframe(1)
            value = args[0] if args else next(iter(kwargs.values()), None)
            hub.guarded(lambda: _seeded(recorder, library, value, frame))
        return result

    return seed


def _seeded(recorder: Recorder, library: str, value: Any, frame: Any) -> None:
    hub = recorder.hub
    hub.sample(why=("seed", frame.f_code, frame.f_lasti))
    if hub.sampling:
        known = type(value) in (int, float, str)
        recorder.emit(
            Seeded,
            frame,
            lambda place, serial: {
                "by_rank": rank_identity.asked(source_map.written(place, 0, "seed"))
            },
            library=library,
            value=value if known else None,
            depends=not known,
        )


def _restored(recorder: Recorder, original: Any) -> Any:
    hub = recorder.hub

    def set_rng_state(*args: Any, **kwargs: Any) -> None:
        original(*args, **kwargs)
        if not is_compiling() and hub.sampling and hub.is_here:
            frame = sys._getframe(1)
            hub.guarded(lambda: recorder.emit(Used, frame, what="torch.set_rng_state"))

    return set_rng_state
