"""Global random generators: seeded, and put back to what they were."""

from __future__ import annotations

import random
import sys
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
    hub = recorder.hub
    for owner in (torch, torch.random):
        patches.after(hub, owner, "manual_seed", partial(_seeded, recorder, "torch"))
        # `fork_rng` puts the state back by calling it.
        patches.after(hub, owner, "set_rng_state", partial(_restored, recorder))
    patches.after(hub, random, "seed", partial(_seeded, recorder, "random"))
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        patches.after(hub, numpy.random, "seed", partial(_seeded, recorder, "numpy"))


def _seeded(recorder: Recorder, library: str, call: FinishedCall) -> None:
    hub = recorder.hub
    if not hub.is_here:
        return
    hub.sample(why=("seed", call.frame.f_code, call.frame.f_lasti))
    if hub.sampling:
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


def _restored(recorder: Recorder, call: FinishedCall) -> None:
    if recorder.hub.sampling and recorder.hub.is_here:
        recorder.emit(Used, call.frame, what="torch.set_rng_state")
