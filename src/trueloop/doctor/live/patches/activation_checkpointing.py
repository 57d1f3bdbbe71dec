"""Activation checkpointing that does not keep the state of the generators."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling
from torch.utils import checkpoint as checkpointing

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.nonfinite.recent_calls import draws_since, rng_state
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.watcher import quietly
from trueloop.doctor.model.events import Used

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.watcher import Watcher

WHAT = "torch.utils.checkpoint"


def install(watcher: Watcher, patches: Patches) -> None:
    patches.replace(checkpointing, "checkpoint", partial(_checkpoint, watcher))


def _checkpoint(watcher: Watcher, original: Any) -> Any:
    def checkpoint(*args: Any, **kwargs: Any) -> Any:
        if is_compiling() or not watcher.looking or "preserve_rng_state" not in kwargs:
            return original(*args, **kwargs)
        if kwargs["preserve_rng_state"] is not False or not watcher.can_read(args, kwargs):
            return original(*args, **kwargs)
        before = quietly(watcher, rng_state)
        result = original(*args, **kwargs)
        frame = sys._getframe(1)

        def say() -> None:
            learns = any(each.requires_grad for each in autograd_graph.tensors_in(result))
            if learns and draws_since(before):
                # No step of the program: where it stands says nothing about its loops.
                here = user_frames.sites(frame)
                watcher.send(watcher.track(), Used, here, {"what": WHAT})

        quietly(watcher, say)
        return result

    return checkpoint
