"""The form of the state in a checkpoint: checked before it is used.

Each part is declared by its owner; what `fit` adds is declared here, since a file is checked before
there is a `fit`. The model, optimizer and feed check themselves whether the state fits them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from trueloop import seed
from trueloop.errors import RunError
from trueloop.feed import Feed
from trueloop.shapes import (
    COUNT,
    FINITE,
    SCALAR,
    Anything,
    DictOf,
    ListOf,
    Maybe,
    OneOf,
    TupleOf,
    problem,
)
from trueloop.step import Step
from trueloop.step.loading import MODEL

STATE = {
    "model": MODEL,
    "step": Step.STATE,
    "feed": Feed.STATE,
    "rng": seed.STATE,
    "named": Maybe(DictOf(str, Anything)),
    "ranks": Maybe({"count": COUNT, "rank": COUNT}),
}
"""The result of `capture`."""

# Levels of nesting; what holds itself has no end of them.
_DEEPEST = 60
_SCORES = DictOf(str, float)
_MEANS = {
    "updates": ListOf(TupleOf(DictOf(str, SCALAR), COUNT)),
    "sums": DictOf(str, TupleOf(SCALAR, COUNT)),
}
OF_FIT = {
    "early_stop": OneOf(
        None,
        {
            "best": OneOf(None, float),
            "bar": OneOf(None, float),
            "stale": COUNT,
            "loss": Maybe(float),
            "weights": OneOf(None, MODEL),
        },
    ),
    "train": {
        **_MEANS,
        "metrics": OneOf(None, DictOf(str, Anything)),
    },
    "seconds": FINITE,
    "best": TupleOf(str, OneOf(None, float), OneOf(None, COUNT)),
    "best_update": Maybe(OneOf(None, COUNT)),
    "clock": Maybe(
        {
            "samples": COUNT,
            "tokens": COUNT,
            "seconds": FINITE,
            "evaluation_due": bool,
            "at_last_batch": bool,
        }
    ),
    "line": Maybe(OneOf(None, {"counts": TupleOf(COUNT, COUNT, COUNT), **_MEANS})),
    "records": ListOf(TupleOf(_SCORES, COUNT, OneOf(None, COUNT), OneOf(None, COUNT), FINITE)),
}
"""The state that `fit` keeps beside it."""


def check(state: Any, path: Path | None = None) -> None:
    """Raise `RunError` for the first place in `state` that is not as its owner declares.

    `path` is the checkpoint that it was read from, for the message.
    """
    found = problem(state, STATE | OF_FIT if _is_of_fit(state) else STATE)
    what = str(found) if found is not None else _contradiction(state) or _unusable(state)
    if what is not None:
        if path is None:
            raise RunError(f"not a state to resume from ({what}): give one of load_checkpoint")
        raise RunError(f"{path}: {what}: use a different checkpoint")


def _is_of_fit(state: Any) -> bool:
    return isinstance(state, dict) and any(name in state for name in OF_FIT)


def _contradiction(state: dict[str, Any]) -> str | None:
    """Two parts that cannot both be right."""
    step, model = state["step"], state["model"]
    if step["gradients"] and not step["window"]["micro_batches"]:
        return "step.gradients is not empty, but step.window is closed"
    if not _is_of_fit(state):
        return None
    early = state["early_stop"]
    if early is not None and early["weights"] is not None:
        return _unlike(early["weights"], model)
    return None


def _unusable(state: dict[str, Any]) -> str | None:
    """A part at any depth that could only be stumbled over: the parts left to their readers too."""
    parts: list[tuple[str, Any]] = [("", state)]
    for _ in range(_DEEPEST):
        inner: list[tuple[str, Any]] = []
        for path, part in parts:
            if isinstance(part, Tensor) and part.is_meta:
                return f"{path[1:]} is a tensor without values"
            if isinstance(part, dict):
                inner += [(f"{path}.{str(key)[:60]}", one) for key, one in part.items()]
            elif isinstance(part, (list, tuple)) and not _is_list_of_numbers(part):
                inner += [(f"{path}[{k}]", one) for k, one in enumerate(part)]
        if not inner:
            return None
        # What stands in several places is looked at once: what holds itself twice doubles.
        parts = list({id(part): (path, part) for path, part in inner}.values())
    return f"{parts[0][0][1:][:60]}... is nested too deep"


def _is_list_of_numbers(part: Sequence[Any]) -> bool:
    """Whether it is a list of numbers: those of a generator are many."""
    return all(type(one) in (int, float, str) for one in part)


def _unlike(weights: dict[str, Any], model: dict[str, Any]) -> str | None:
    """Where the weights kept for the end are not those of the model."""
    for name in {**model, **weights}:
        one, other = weights.get(name), model.get(name)
        if isinstance(one, Tensor) and isinstance(other, Tensor):
            if (one.shape, one.dtype) == (other.shape, other.dtype):
                continue
        elif type(one) is type(other) and name in weights and name in model:
            continue
        return f"early_stop.weights.{name} is not like model.{name}"
    return None
