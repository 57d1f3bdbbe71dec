"""Records of a step, made up."""

from __future__ import annotations

import math
from typing import Any

import torch

from trueloop.records import StepRecord


def step_record(
    update: int, *, batches: int = 8, skipped: bool = False, **other: Any
) -> StepRecord:
    """A plausible record: the loss falls, the learning rate follows a cosine."""
    loss = torch.tensor(1.1 * math.exp(-update / 300) + 0.02)
    values = {
        "epoch": (update - 1) // batches,
        "batch": (update - 1) % batches,
        "update": update,
        "loss": loss,
        "grad_norm": torch.tensor(2.0) * loss,
        "lr": 5e-4 * (1 + math.cos(math.pi * update / 800)),
        "samples": 64,
        "updated": not skipped,
        "skipped": skipped,
    }
    return StepRecord(**{**values, **other})
