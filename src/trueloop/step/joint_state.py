"""The states of several optimizers as one, in the form of a single optimizer's.

    {"state": {0: {...}, 1: ...}, "param_groups": [{"params": [0, 1], ...}, ...],
     "optimizers": [{"kind": "Muon", "groups": 1}, {"kind": "AdamW", "groups": 2}]}

Parameters are numbered through, in the order of the optimizers. So whoever divides a state over
ranks, moves it to a device or compares it needs to know of one form only. A single optimizer's
state is its own, without the third entry.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from torch.optim import Optimizer

from trueloop.errors import RunError
from trueloop.shapes import COUNT, Anything, DictOf, ListOf, Maybe
from trueloop.step import loading

SHAPE = {
    **loading.OPTIMIZER,
    "optimizers": Maybe(
        ListOf({"kind": str, "groups": COUNT, "own": Maybe(DictOf(object, Anything))})
    ),
}
"""Of the state, one optimizer's or several's."""

_JOINT = ("state", "param_groups")


def taken(optimizers: Sequence[Optimizer]) -> dict[str, Any]:
    """The state of one optimizer, or of several as one; its tensors are the live ones."""
    if len(optimizers) == 1:
        return optimizers[0].state_dict()
    joint: dict[str, Any] = {"state": {}, "param_groups": [], "optimizers": []}
    start = 0
    for optimizer in optimizers:
        one = optimizer.state_dict()
        numbers = [number for group in one["param_groups"] for number in group["params"]]
        moved = {number: start + k for k, number in enumerate(numbers)}
        about = {"kind": type(optimizer).__name__, "groups": len(one["param_groups"])}
        own = {name: part for name, part in one.items() if name not in _JOINT}
        kept = {key: slots for key, slots in one["state"].items() if key not in moved}
        if kept:
            own["state"] = kept
        if own:
            about["own"] = own  # what it keeps beside its parameters' state
        joint["optimizers"].append(about)
        joint["state"] |= {moved[n]: s for n, s in one["state"].items() if n in moved}
        joint["param_groups"] += [
            {**group, "params": [moved[number] for number in group["params"]]}
            for group in one["param_groups"]
        ]
        start += len(numbers)
    return joint


def divided(optimizers: Sequence[Optimizer], saved: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The form of each optimizer's own state, as `taken` returns it.

    Raises `RunError` for the state of other optimizers.
    """
    check_same(optimizers, saved)
    if len(optimizers) == 1:
        return [dict(saved)]
    if sum(about["groups"] for about in saved["optimizers"]) != len(saved["param_groups"]):
        raise RunError(
            "step.optimizer.optimizers does not fit param_groups: use a different checkpoint"
        )
    found, groups = [], iter(saved["param_groups"])
    for about in saved["optimizers"]:
        own = dict(about.get("own", {}))
        mine = [next(groups) for _ in range(about["groups"])]
        numbers = [number for group in mine for number in group["params"]]
        moved = {number: k for k, number in enumerate(numbers)}
        state = {moved[n]: slots for n, slots in saved["state"].items() if n in moved}
        state |= own.pop("state", {})
        packed = [{**g, "params": [moved[number] for number in g["params"]]} for g in mine]
        found.append({**own, "state": state, "param_groups": packed})
    return found


def check_same(optimizers: Sequence[Optimizer], saved: Mapping[str, Any]) -> None:
    """Raise `RunError` unless `saved` is of as many optimizers, of the same classes."""
    here = [type(optimizer).__name__ for optimizer in optimizers]
    there = [about["kind"] for about in saved.get("optimizers", [])]
    # A single one's state does not say of which class it is.
    if (here if len(here) > 1 else []) != there:
        raise RunError(
            f"the checkpoint was written with {_named(there)}, and this step has {_named(here)}: "
            "build the step with the same optimizers, in the same order"
        )


def load(
    optimizers: Sequence[Optimizer],
    saved: Mapping[str, Any],
    placed: Callable[[Optimizer, dict[str, Any]], dict[str, Any]],
) -> None:
    """Let each optimizer load its part of `saved`, as `placed(optimizer, part)` lays it out.

    Raises `RunError` if that is not their state; some may have loaded theirs by then.
    """
    for k, (optimizer, part) in enumerate(zip(optimizers, divided(optimizers, saved), strict=True)):
        of = "step.optimizer" if len(optimizers) == 1 else f"step.optimizers[{k}]"
        loading.load_optimizer(optimizer, placed(optimizer, part), of)


def _named(kinds: Sequence[str]) -> str:
    return f"the optimizers {', '.join(kinds)}" if len(kinds) > 1 else "one optimizer"
