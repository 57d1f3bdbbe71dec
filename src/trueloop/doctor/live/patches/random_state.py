"""Global random generators: seeded, and put back to what they were."""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import torch

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.processes import rank_identity
from trueloop.doctor.model.events import Seeded, Used

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import FinishedCall, Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    hub, last = recorder.hub, _LastSeed()
    for owner in (torch, torch.random):
        for name in ("manual_seed", "seed"):
            patches.after(hub, owner, name, partial(_seeded, recorder, "torch", last))
        # `fork_rng` puts the state back by calling it.
        patches.after(hub, owner, "set_rng_state", partial(_restored, recorder, last))
    patches.after(hub, random, "seed", partial(_seeded, recorder, "random", last))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        patches.after(hub, numpy.random, "seed", partial(_seeded, recorder, "numpy", last))


@dataclass
class _LastSeed:
    seen: bool = False
    """It was recorded, and the state was not restored after it."""


def _seeded(recorder: Recorder, library: str, last: _LastSeed, call: FinishedCall) -> None:
    hub = recorder.hub
    if not hub.is_here:
        return
    hub.sample(why=("seed", call.frame.f_code, call.frame.f_lasti))
    if hub.sampling:
        last.seen = True
        value = call.args[0] if call.args else next(iter(call.kwargs.values()), None)
        known = type(value) in (int, float, str)
        recorder.emit(
            Seeded,
            call.frame,
            lambda place, serial: {
                "by_rank": rank_identity.asked(source_map.written(place, 0, "seed"))
            },
            library=library,
            value=value if known else None,
            depends=not known,
        )


def _restored(recorder: Recorder, last: _LastSeed, call: FinishedCall) -> None:
    hub = recorder.hub
    if not hub.is_here:
        return
    if last.seen:
        hub.sample()  # what was sampled since the seed may be over
    last.seen = False
    if hub.sampling:
        recorder.emit(Used, call.frame, what="torch.set_rng_state")
