"""What a run goes on from, whoever writes its loop."""

from __future__ import annotations

from typing import Any

from trueloop import seed
from trueloop.errors import RunError
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


def restore(state: dict[str, Any], step: Step, feed: Feed) -> None:
    """Take up what `capture` returned; call `step.plan` before, if the schedule needs it.

    Raises `RunError` when the state is none to go on from, or belongs to a step or a feed with
    other options.
    """
    if "step" not in state:
        raise RunError("this file holds no state to go on from: give one of load_checkpoint")
    step.load_state_dict({"model": state["model"], **state["step"]})
    feed.load_state_dict(state["feed"])
    seed.set_rng_state(state["rng"])
