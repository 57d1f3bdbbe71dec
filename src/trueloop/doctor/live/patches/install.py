"""The patches of torch: each file patches one part of it and turns calls into events."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueloop.doctor.live.objects import hook_numbers
from trueloop.doctor.live.patches import (
    activation_checkpointing,
    backward,
    compiled_steps,
    dropout,
    dynamo_skip,
    loaders,
    losses,
    modules,
    optimizers,
    random_state,
    ranks,
    schedules,
    state_files,
)

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    """Put everything in; `patches.undo()` takes it back."""
    dynamo_skip.leave_to_python()
    parts = (
        modules, optimizers, backward, schedules, loaders, losses, dropout, random_state,
        state_files, ranks, activation_checkpointing, compiled_steps,
    )  # fmt: skip
    with hook_numbers.of_the_watcher():
        for part in parts:
            part.install(recorder, patches)
