"""Updates of `Step(compile="step")`, which are one compiled graph each: nothing of them is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trueloop.step.compiled_step import CompiledStep

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import FinishedCall, Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    hub = recorder.hub

    def taken(call: FinishedCall) -> None:
        if call.result is not None:
            hub.compiled_update(call.result.updated)

    patches.after(hub, CompiledStep, "take", taken)
