"""Compiled updates against eager ones: how far the weights are apart after the same updates.

Relative to the eager weights, in float64 and float32; the goal is reordering alone: 1e-10 and 1e-4
after 200 updates.
"""

from __future__ import annotations

from typing import Any

import torch
from side_by_side.loops import Job
from torch import Tensor, nn

import trueloop

JOB = Job(sizes=(8, 32, 32, 3), samples=1024, batch=64)
WITHIN = {torch.float64: 1e-10, torch.float32: 1e-4}


def weights(device: torch.device, dtype: torch.dtype, updates: int, **options: Any) -> Tensor:
    model = JOB.model().to(device, dtype)
    step = trueloop.Step(
        model,
        trueloop.optimizers.adamw(model, 1e-3),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=1.0,
        **options,
    )
    inputs, targets = JOB.data()
    feed = trueloop.Feed((inputs.to(dtype), targets), JOB.batch, shuffle=True, device=device)
    epoch = 0
    while step.updates < updates:
        for batch in feed.epoch(epoch):
            if step.updates < updates:
                step(batch)
        step.end_epoch()
        epoch += 1
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def measure(device: torch.device, quick: bool) -> list[dict[str, Any]]:
    updates = 20 if quick else 200
    rows = []
    for dtype, limit in WITHIN.items():
        eager = weights(device, dtype, updates)
        for accumulate in (1, 2):
            same = weights(device, dtype, updates, accumulate=accumulate)
            found = weights(device, dtype, updates, accumulate=accumulate, compile="step")
            apart = float((found - same).norm() / same.norm())
            moved = float((same - eager).norm() / eager.norm()) if accumulate > 1 else 0.0
            rows.append(
                {
                    "dtype": str(dtype).removeprefix("torch."),
                    "accumulate": accumulate,
                    "updates": updates,
                    "apart": f"{apart:.2e}",
                    "wanted": f"at most {limit:g}",
                    "ok": apart <= limit,
                }
            )
            assert accumulate == 1 or moved > 0, "accumulation changed nothing"
    return rows
