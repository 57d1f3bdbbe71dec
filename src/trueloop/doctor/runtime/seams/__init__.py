"""What is put into torch: each file patches one part of it and turns calls into events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueloop.doctor.runtime import uncompiled
from trueloop.doctor.runtime.seams import (
    backward,
    compiled_steps,
    dropout,
    files,
    loaders,
    losses,
    modules,
    optimizers,
    ranks,
    recomputing,
    schedules,
    seeds,
)

if TYPE_CHECKING:
    from trueloop.doctor.runtime.patches import Patches
    from trueloop.doctor.runtime.watcher import Watcher


def install(watcher: Watcher, patches: Patches) -> None:
    """Put everything in; `patches.undo()` takes it back."""
    uncompiled.leave_to_python()
    parts = (
        modules, optimizers, backward, schedules, loaders, losses, dropout, seeds, files, ranks,
        recomputing, compiled_steps,
    )  # fmt: skip
    for part in parts:
        part.install(watcher, patches)
