"""One update of the spiral's network: ours eager and compiled, by hand, and the floor.

`compile="step"` is one CUDA graph on CUDA: what is left is a replay. The data are on the device.
"""

from __future__ import annotations

import statistics
from typing import Any

import torch
from side_by_side.loops import Job
from torch import nn

import trueloop
from gpu.turns import WAYS, Update, endless, median_ratio, seconds_each, stepping

JOB = Job(sizes=(2, 128, 128, 3), samples=64_000, batch=64)


def data(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    x, y = JOB.data()
    return x.to(device), y.to(device)


def ours(device: torch.device, options: dict[str, Any]) -> Update:
    model = JOB.model().to(device)
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, JOB.lr),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=JOB.clip,
        **options,
    )
    return stepping(step, trueloop.Feed(data(device), JOB.batch, shuffle=True))


def by_hand(device: torch.device, *, compiled: bool) -> Update:
    model, criterion = JOB.model().to(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=JOB.lr, fused=True)
    forward: Any = torch.compile(model) if compiled else model
    batches = endless(trueloop.Feed(data(device), JOB.batch, shuffle=True))

    def update() -> None:
        inputs, targets = next(batches)
        optimizer.zero_grad()
        criterion(forward(inputs), targets).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), JOB.clip)
        optimizer.step()

    return update


def floor(device: torch.device) -> Update:
    model, criterion = JOB.model().to(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=JOB.lr, fused=True)
    inputs, targets = (part[: JOB.batch].clone() for part in data(device))

    def update() -> None:
        criterion(model(inputs), targets).backward()
        optimizer.step()
        optimizer.zero_grad()

    return update


def measure(device: torch.device, quick: bool) -> list[dict[str, Any]]:
    updates = {name: ours(device, options) for name, options in WAYS.items()}
    updates["by hand"] = by_hand(device, compiled=False)
    updates["by hand, torch.compile(model)"] = by_hand(device, compiled=True)
    updates["floor"] = floor(device)
    count, rounds = (3, 1) if quick else (200, 9)
    found = seconds_each(updates, device, count=count, rounds=rounds, warm=5 if quick else 30)
    return [
        {
            "loop": name,
            "µs per update": round(statistics.median(values) * 1e6, 1),
            "time, floor = 1": round(median_ratio(found, name, "floor"), 3),
            "speed, by hand = 1": round(median_ratio(found, "by hand", name), 3),
        }
        for name, values in found.items()
    ]
