"""Activation checkpointing that does not keep the state of the generators."""

from __future__ import annotations

import sys
from functools import partial
from typing import TYPE_CHECKING, Any

from torch.compiler import is_compiling
from torch.utils import checkpoint as checkpointing

from trueloop.doctor.events import Used
from trueloop.doctor.runtime import frames, graph
from trueloop.doctor.runtime.calls import draws_since, rng_state
from trueloop.doctor.runtime.watcher import quietly

if TYPE_CHECKING:
    from trueloop.doctor.runtime.patches import Patches
    from trueloop.doctor.runtime.watcher import Watcher

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
            learns = any(each.requires_grad for each in graph.tensors_in(result))
            if learns and draws_since(before):
                # No step of the program: where it stands says nothing about its loops.
                here = frames.sites(frame)
                watcher.send(watcher.track(), Used, here, {"what": WHAT})

        quietly(watcher, say)
        return result

    return checkpoint
