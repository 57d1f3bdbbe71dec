"""Updates of `Step(compile="step")`, which are one compiled graph each: nothing of them is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueloop.step.compiled_step import CompiledStep

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    patches.replace(CompiledStep, "take", lambda original: _take(recorder, original))


def _take(recorder: Recorder, original: Any) -> Any:
    hub = recorder.hub

    def take(self: CompiledStep, *args: Any) -> Any:
        record = original(self, *args)
        if record is not None:
            hub.guarded(hub.compiled_update, record.updated)
        return record

    return take
