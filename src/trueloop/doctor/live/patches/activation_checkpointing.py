"""Activation checkpointing that does not keep the state of the generators."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from torch.compiler import is_compiling
from torch.utils import checkpoint as checkpointing

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.nonfinite.recent_calls import draws_since, rng_state
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.model.events import Used

if TYPE_CHECKING:
    from trueloop.doctor.live.hub import P, R
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder

WHAT = "torch.utils.checkpoint"


def install(recorder: Recorder, patches: Patches) -> None:
    patches.replace(checkpointing, "checkpoint", partial(_checkpoint, recorder))


def _checkpoint(recorder: Recorder, original: Callable[P, R]) -> Callable[P, R]:
    hub = recorder.hub

    def checkpoint(*args: P.args, **kwargs: P.kwargs) -> R:
        if is_compiling() or not hub.sampling or "preserve_rng_state" not in kwargs:
            return original(*args, **kwargs)
        if kwargs["preserve_rng_state"] is not False or not recorder.can_read(args, kwargs):
            return original(*args, **kwargs)
        before = hub.guarded(rng_state)
        result = original(*args, **kwargs)
        frame = sys._getframe(1)

        def say() -> None:
            learns = any(each.requires_grad for each in autograd_graph.tensors_in(result))
            if learns and draws_since(before):
                # Not a step of the program: its place shows nothing about its loops.
                here = user_frames.sites(frame)
                recorder.send(recorder.track(), Used, here, {"what": WHAT})

        hub.guarded(say)
        return result

    return checkpoint
