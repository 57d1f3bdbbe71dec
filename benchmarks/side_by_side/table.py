"""One epoch of a table of 10⁶ rows and 30 columns that is in memory.

30 → 64 → 2 with ReLU, batches of 1,024, Adam, gradients clipped to a norm of 1. By hand:
`DataLoader(TensorDataset, shuffle=True)`. The floor takes no data and clips nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from side_by_side import loops
from side_by_side.contender import megabytes
from side_by_side.loops import Epochs, Job
from side_by_side.workload import (
    COMPILED,
    MEMORY,
    OURS,
    Figure,
    Goal,
    Make,
    Settings,
    Turn,
    Workload,
)

JOB = Job(sizes=(30, 64, 2), samples=1_000_000, batch=1024)
FIGURE, DATA = "seconds per epoch", "MB of data"
PEAK = "peak MB for the data"


def in_turns(make: Callable[[Job], Epochs]) -> Make:
    def contender(settings: Settings) -> Turn:
        job = replace(JOB, samples=20_000) if settings.quick else JOB
        make(replace(JOB, samples=2 * JOB.batch))(1)  # what a first update takes is not the data's
        Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
        before = megabytes("VmRSS")
        epochs, size = make(job), job.samples * (4 * job.sizes[0] + 8) / 1e6

        def turn() -> dict[str, float]:
            seconds = epochs(1)
            return {FIGURE: seconds, DATA: size, PEAK: megabytes("VmHWM") - before}

        return turn

    return contender


WORKLOAD = Workload(
    title="an epoch of a table of 10⁶ rows × 30 columns",
    figures=(Figure(FIGURE, digits=2), Figure(PEAK, digits=0), Figure(MEMORY, digits=0)),
    contenders={
        name: in_turns(make)
        for name, make in {
            OURS: loops.ours,
            COMPILED: partial(loops.ours, compile="step"),
            "by hand": loops.by_hand,
            "by hand, torch.compile(model)": partial(loops.by_hand, compiled=True),
            "floor": loops.floor,
        }.items()
    },
    goals=(
        Goal("times as fast as DataLoader(TensorDataset)", FIGURE, "by hand", OURS, at_least=5),
        Goal(
            "times the data's own memory, at its peak",
            PEAK,
            OURS,
            OURS,
            at_most=1.3,
            under_figure=DATA,
        ),
    ),
)
