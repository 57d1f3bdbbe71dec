"""What `trueloop watch` costs an update on the device: watched and unwatched in turns."""

from __future__ import annotations

import statistics
import time
from typing import Any

import torch
from nanogpt_style import GPT, make_optimizer
from watch_cost import small

from gpu.turns import Update, synchronise
from trueloop.doctor.live.sampling_schedule import FIRST
from trueloop.doctor.live.watcher import Watcher


def transformer(device: torch.device, quick: bool) -> Update:
    torch.manual_seed(0)
    model = GPT(65, 32, 1, 32, 2) if quick else GPT(65, 256, 6, 384, 6)
    model = model.to(device)
    optimizer = make_optimizer(model, fused=True)
    tokens, targets = torch.randint(
        65, (2, 4 if quick else 64, 32 if quick else 256), device=device
    )

    def update() -> None:
        loss = model(tokens, targets)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return update


def seconds(update: Update, device: torch.device, count: int) -> float:
    synchronise(device)
    started = time.perf_counter()
    for _ in range(count):
        update()
    synchronise(device)
    return (time.perf_counter() - started) / count


def measure(device: torch.device, quick: bool) -> list[dict[str, Any]]:
    with device:
        loops: dict[str, tuple[Update, int]] = {
            "small network": (small(256), 3_000),
            "GPT, 6 layers": (transformer(device, quick), 200),
        }
    rows = []
    for name, (update, count) in loops.items():
        count = 2 * FIRST if quick else count
        seconds(update, device, FIRST)
        ratios, bare = [], []
        for _ in range(1 if quick else 3):
            bare.append(seconds(update, device, count))
            watcher = Watcher()
            watcher.start()
            watched = seconds(update, device, count)
            watcher.stop()
            watcher.findings()
            ratios.append(watched / bare[-1])
        rows.append(
            {
                "loop": name,
                "updates": count,
                "ms per update": round(statistics.median(bare) * 1e3, 3),
                "watched / unwatched": round(statistics.median(ratios), 3),
            }
        )
    return rows
