"""The state from which a run resumes, in `fit` or in the user's own loop."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

import torch
from torch import Tensor

from trueloop import ranks, seed
from trueloop.checkpoint import contents
from trueloop.checkpoint.layout import laid_out
from trueloop.checkpoint.named_state import restore_named
from trueloop.checkpoint.sharded import ShardedState
from trueloop.feed import Feed
from trueloop.step import Step

Place = tuple[int, int, int]


def place_of(step: Step) -> Place:
    """The progress of the run: epoch, next batch, updates applied."""
    return step.epoch, step.batch, step.updates


def capture(step: Step, feed: Feed) -> dict[str, Any]:
    """Model, optimizer, scaler, schedule, open window, counters, feed and generators, as one state.

    Plain data and tensors, of which some are live: copy or write it before going on. Under
    several ranks every rank calls it, for its own part.
    """
    state = step.state_dict()
    found = {
        "model": state.pop("model"),
        "step": state,
        "feed": feed.state_dict(),
        "rng": seed.rng_state(),
    }
    if ranks.is_distributed():
        found["ranks"] = _about(step)
    return found


def _about(step: Step) -> dict[str, Any]:
    """The names that dividing the state over the ranks needs: for each name of a parameter its
    first one (of tied weights), and the names of the optimizer's parameters by their numbers."""
    first: dict[int, str] = {}
    named = step.model.named_parameters(remove_duplicate=False)
    parameters = {name: first.setdefault(id(p), name) for name, p in named}
    gradients = step._gradients
    gradients.refresh()
    names = {id(p): n for n, p in zip(gradients.names, gradients.parameters, strict=True)}
    return {
        "count": ranks.world_size(),
        "rank": ranks.rank(),
        "parameters": parameters,
        "optimizer": [names[id(p)] for p in gradients.held],
    }


def restore(
    state: dict[str, Any], step: Step, feed: Feed, named: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Take up what `capture` returned; call `step.plan` before, if the schedule needs it. Returns
    the state that was loaded: of sharded tensors, this rank's shards.

    `named` are the values of `Checkpoints(..., state=...)`, which are restored too. Under several
    ranks every rank calls it, and restores its own part: of sharded tensors its shards, and its own
    generators, if as many ranks have saved the state. Otherwise rank 0 resumes with the saved
    generators, and those of the others are seeded from them.

    Raises `RunError` when the state cannot be resumed from, or belongs to a step or a feed with
    different options, `ScheduleError` when the schedule does not end where the planned run ends.
    The step, its model and optimizer, the feed and the generators are then as they were.
    """
    if isinstance(state, ShardedState):
        contents.check(state.imagined())
    else:
        contents.check(state)
    feed.check_state(state["feed"])
    if ranks.is_distributed() or isinstance(state, ShardedState):
        what = "the other ranks' reading of a checkpoint"
        state = ranks.on_all(lambda: laid_out(state, step, named or {}), what)
    with ExitStack() as undo:
        restore_named(named or {}, state.get("named", {}), undo)
        step.load_state_dict({"model": state["model"], **state["step"]})
        undo.pop_all()
    feed.load_state_dict(state["feed"])
    seed.set_rng_state(state["rng"])
    saved = state.get("ranks", {"count": 1, "rank": 0})
    if ranks.rank() != saved["rank"]:
        # As many draws as there are ranks, each its own, and the same after every such resume.
        seed.reseed_from_state(ranks.rank())
    return state


def relocated(
    state: dict[str, Any], device: torch.device | None, dtype: torch.dtype | None
) -> dict[str, Any]:
    """`state` with its weights, gradients and the optimizer's tensors on `device` (None: where
    they are), the floating-point ones of weights and gradients in `dtype`.

    Generators and counters stay on the CPU, and so do the optimizer's scalars: read there, they
    make no step wait for the device.
    """

    def moved(value: Any, kind: torch.dtype | None) -> Any:
        if isinstance(value, Tensor):
            kind = kind if value.is_floating_point() else None
            return value.to(device or value.device, kind or value.dtype)
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
        if "train_weights" in step:
            state["step"]["train_weights"] = moved(step["train_weights"], dtype)
    if isinstance(early := state.get("early_stop"), dict):
        state["early_stop"] = {**early, "weights": moved(early["weights"], dtype)}
    return state


def _moved_slots(slots: Any, device: torch.device | None) -> Any:
    """The optimizer's state of one parameter, on `device` but for scalars."""
    if not isinstance(slots, dict):
        return slots
    return {
        name: slot.to(device or slot.device) if isinstance(slot, Tensor) and slot.dim() else slot
        for name, slot in slots.items()
    }
