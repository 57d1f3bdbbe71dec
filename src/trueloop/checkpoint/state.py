"""What a run goes on from, whoever writes its loop."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from trueloop import seed
from trueloop.checkpoint import contents
from trueloop.checkpoint.named import restore_named
from trueloop.feed import Feed
from trueloop.step import Step

Place = tuple[int, int, int]


def place_of(step: Step) -> Place:
    """Where the run stands: epoch, next batch, updates applied."""
    return step.epoch, step.batch, step.updates


def capture(step: Step, feed: Feed) -> dict[str, Any]:
    """Model, optimizer, scaler, schedule, open window, counters, feed and generators, as one state.

    Plain data and tensors, of which some are live: copy or write it before going on.
    """
    state = step.state_dict()
    return {
        "model": state.pop("model"),
        "step": state,
        "feed": feed.state_dict(),
        "rng": seed.rng_state(),
    }


def restore(
    state: dict[str, Any], step: Step, feed: Feed, named: Mapping[str, Any] | None = None
) -> None:
    """Take up what `capture` returned; call `step.plan` before, if the schedule needs it.

    `named` are the values of `Checkpoints(..., state=...)`, which take up what was saved of them.

    Raises `RunError` when the state is none to go on from, or belongs to a step or a feed with
    other options, `ScheduleError` when the schedule does not end where the planned run ends. The
    step, its model and optimizer, the feed and the generators are then as they were.
    """
    contents.check(state)
    feed.check_state(state["feed"])
    with ExitStack() as undo:
        restore_named(named or {}, state.get("named", {}), undo)
        step.load_state_dict({"model": state["model"], **state["step"]})
        undo.pop_all()
    feed.load_state_dict(state["feed"])
    seed.set_rng_state(state["rng"])


def relocated(
    state: dict[str, Any], device: torch.device, dtype: torch.dtype | None
) -> dict[str, Any]:
    """`state` with its weights, gradients and the optimizer's tensors on `device`, the
    floating-point ones of weights and gradients in `dtype`.

    Generators and counters stay on the CPU, and so do the optimizer's scalars: read there, they
    make no step wait for the device.
    """

    def moved(value: Any, kind: torch.dtype | None) -> Any:
        if isinstance(value, Tensor):
            return value.to(device, kind if value.is_floating_point() else None)
        if isinstance(value, dict):
            return {name: moved(part, kind) for name, part in value.items()}
        return value

    state = dict(state)
    if "model" in state:
        state["model"] = moved(state["model"], dtype)
    if isinstance(step := state.get("step"), dict):
        slots = {
            key: _moved_slots(part, device) for key, part in step["optimizer"]["state"].items()
        }
        state["step"] = {
            **step,
            "optimizer": {**step["optimizer"], "state": slots},
            "gradients": moved(step["gradients"], dtype),
        }
    if isinstance(early := state.get("early_stop"), dict):
        state["early_stop"] = {**early, "weights": moved(early["weights"], dtype)}
    return state


def _moved_slots(slots: Any, device: torch.device) -> Any:
    """What an optimizer keeps of one parameter, on `device` but for scalars."""
    if not isinstance(slots, dict):
        return slots
    return {
        name: slot.to(device) if isinstance(slot, Tensor) and slot.dim() else slot
        for name, slot in slots.items()
    }
