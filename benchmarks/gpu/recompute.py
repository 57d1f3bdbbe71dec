"""What recomputed activations save and cost on the device: a GPT of 12 layers in bf16.

Memory is the most that torch's allocator had given out (`torch.cuda.max_memory_allocated`), less
what it had given out before the first update.
"""

from __future__ import annotations

from typing import Any

import torch

import trueloop
from gpu.gpt import make, sizes
from gpu.turns import Update, seconds_each

WAYS = {"all kept": None, "every second block": 2, "every block": 1}


def updates_of(device: torch.device, quick: bool, recompute: Any) -> Update:
    model = make(device, quick)
    step = trueloop.Step(
        model,
        trueloop.optimizers.adamw(model, 6e-4),
        lambda model, batch: model(*batch),
        precision="bf16",
        recompute=recompute,
    )
    vocabulary, context, *_, batch = sizes(quick)
    tokens = torch.randint(vocabulary, (2, batch, context), device=device)
    return lambda: step((tokens[0], tokens[1]))


def measure(device: torch.device, quick: bool) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name, recompute in WAYS.items():
        update = updates_of(device, quick, recompute)
        update()  # the optimizer's state
        peak = _peak(device, update)
        count, rounds = (1, 1) if quick else (10, 3)
        found = seconds_each({name: update}, device, count=count, rounds=rounds, warm=2)[name]
        seconds = sorted(found)[len(found) // 2]
        rows.append({"recompute": name, "activations MB": peak, "ms": round(seconds * 1e3, 2)})
        del update
    first = rows[0]
    for row in rows:
        row["memory, all kept = 1"] = round(
            row["activations MB"] / max(first["activations MB"], 1), 3
        )
        row["time, all kept = 1"] = round(row["ms"] / first["ms"], 3)
    return rows


def _peak(device: torch.device, update: Update) -> float:
    """MB of an update beyond what stays between updates."""
    if device.type != "cuda":
        update()
        return 0.0
    torch.cuda.reset_peak_memory_stats(device)
    before = torch.cuda.memory_allocated(device)
    update()
    torch.cuda.synchronize(device)
    return round((torch.cuda.max_memory_allocated(device) - before) / 1e6, 1)
