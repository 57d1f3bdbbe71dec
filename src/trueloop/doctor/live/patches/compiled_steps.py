"""Updates of `Step(compile="step")`, which are one compiled graph each: nothing of them is seen."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trueloop.doctor.live.watcher import quietly
from trueloop.step.compiled_step import CompiledStep

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.watcher import Watcher


def install(watcher: Watcher, patches: Patches) -> None:
    patches.replace(CompiledStep, "take", lambda original: _take(watcher, original))


def _take(watcher: Watcher, original: Any) -> Any:
    def take(self: CompiledStep, *args: Any) -> Any:
        record = original(self, *args)
        if record is not None:
            quietly(watcher, watcher.passed_unseen, record.updated)
        return record

    return take
