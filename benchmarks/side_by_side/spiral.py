"""One update of a small network on 2,000 points, on one thread: a loop's own cost weighs most here.

2 → 128 → 128 → 3 with ReLU, batches of 64 (the last of an epoch has 16), Adam, gradients clipped to
a norm of 1. By hand: `DataLoader(TensorDataset)`, `zero_grad`, `backward`, `clip_grad_norm_`,
`step`. The floor is forward, backward and a fused Adam step on one batch that is always the same:
no data, no clip, no record.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from side_by_side import loops
from side_by_side.loops import Epochs, Job
from side_by_side.peers import PEERS
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

JOB = Job(sizes=(2, 128, 128, 3), samples=2000, batch=64)
FIGURE = "µs per update"


def in_turns(make: Callable[[Job], Epochs]) -> Make:
    def contender(settings: Settings) -> Turn:
        epochs, count = make(JOB), 1 if settings.quick else 8

        def turn() -> dict[str, float]:
            return {FIGURE: epochs(count) / (count * JOB.batches) * 1e6}

        return turn

    return contender


def faster(text: str, than: str, by: float) -> Goal:
    return Goal(f"times as fast as {text}", FIGURE, than, OURS, at_least=by)


WORKLOAD = Workload(
    title="one update of a small network (spiral), one thread",
    threads=1,
    figures=(Figure(FIGURE), Figure(MEMORY, digits=0)),
    contenders={
        name: in_turns(make)
        for name, make in {
            OURS: loops.ours,
            COMPILED: partial(loops.ours, compile="step"),
            "by hand": loops.by_hand,
            "by hand, fused Adam": partial(loops.by_hand, fused=True),
            "by hand, torch.compile(model)": partial(loops.by_hand, compiled=True),
            **PEERS,
            "floor": loops.floor,
        }.items()
    },
    goals=(
        faster("the loop by hand", "by hand", 1.85),
        faster("Fabric", "Fabric", 1.9),
        faster("Accelerate", "Accelerate", 2.3),
        faster("Lightning", "Lightning", 2.5),
        faster("transformers' Trainer", "transformers' Trainer", 3.5),
        Goal("times the floor's time", FIGURE, OURS, "floor", at_most=1.25),
        Goal("compile=step: times the eager floor's time", FIGURE, COMPILED, "floor", at_most=0.7),
        Goal(
            "compile=step: times as fast as the loop by hand with torch.compile(model)",
            FIGURE,
            "by hand, torch.compile(model)",
            COMPILED,
            at_least=1.5,
        ),
    ),
)
