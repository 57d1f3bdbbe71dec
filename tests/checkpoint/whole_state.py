"""A small state with all that a checkpoint must hold."""

from __future__ import annotations

import functools
from typing import Any

import torch
from torch import nn

import trueloop
from trueloop.checkpoint import capture


@functools.cache
def _captured() -> dict[str, Any]:
    model = nn.Linear(1, 1)
    step = trueloop.Step(
        model, torch.optim.SGD(model.parameters(), 0.1), trueloop.supervised(nn.MSELoss())
    )
    return capture(step, trueloop.Feed((torch.rand(4, 1), torch.rand(4, 1)), 2))


def whole(**more: Any) -> dict[str, Any]:
    """The state of a step that has done nothing, with `more` in it or in place of its parts."""
    return {**_captured(), **more}
