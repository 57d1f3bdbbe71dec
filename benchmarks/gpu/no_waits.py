"""An update forces no synchronisation: `torch.cuda.set_sync_debug_mode("error")` raises at one."""

from __future__ import annotations

from typing import Any

import torch
from side_by_side.loops import Job
from torch import nn

import trueloop
from gpu.turns import endless

JOB = Job(sizes=(8, 64, 64, 3), samples=4096, batch=64)
WARM, WATCHED = 8, 30


def measure(device: torch.device, quick: bool) -> list[dict[str, Any]]:
    rows = []
    for precision in ("fp32", "bf16"):
        for options in ({}, {"accumulate": 2}, {"schedule": trueloop.schedules.cosine()}):
            named = {"precision": precision, **options}
            shown = ", ".join(f"{key}={getattr(v, 'name', v)}" for key, v in named.items())
            rows.append({"options": shown, **_without_waits(device, named)})
    return rows


def _without_waits(device: torch.device, options: dict[str, Any]) -> dict[str, Any]:
    """Whether `WATCHED` updates, data from the host included, go without a wait."""
    model = JOB.model().to(device)
    step = trueloop.Step(
        model,
        trueloop.optimizers.adamw(model, JOB.lr),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=1.0,
        **options,
    )
    feed = trueloop.Feed(JOB.data(), JOB.batch, shuffle=True, drop_last=True, device=device)
    step.plan(epochs=2, batches=len(feed))
    batches = endless(feed)
    for _ in range(WARM):
        step(next(batches))
    try:
        _watch(device, "error")
        for _ in range(WATCHED):
            step(next(batches))
    except RuntimeError as error:
        return {"ok": False, "what": " ".join(str(error).split())[:100]}
    finally:
        _watch(device, "default")
    return {"ok": True, "what": f"{WATCHED} updates without a wait"}


def _watch(device: torch.device, mode: str) -> None:
    if device.type == "cuda":
        torch.cuda.set_sync_debug_mode(mode)
