"""Checkpoints whose hashes fit and whose content was changed: at any place, into anything.

`TRUELOOP_FUZZ=2000 pytest tests/checkpoint/test_resigned.py tests/cli/test_resigned_commands.py`
tries 2,000 of them.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from hypothesis import strategies as st
from torch import Tensor

from trueloop.checkpoint import store

JUNK: list[Any] = [
    None, True, False, 0, 1, -1, 3, 2**70, 1.5, -0.5, float("nan"), float("inf"), "", "x", b"x",
    [], [1], [None], {}, {"a": 1}, {1: 2}, (1, 2),
    torch.zeros(()), torch.zeros(3), torch.ones(2, 2), torch.zeros((), dtype=torch.int64),
    torch.zeros(1).expand(10**6), torch.tensor(float("nan")), torch.zeros(0), torch.ones(2) > 0,
    torch.eye(2).to_sparse(), torch.zeros(2, dtype=torch.complex64), torch.empty(2, device="meta"),
    torch.zeros(5056, dtype=torch.uint8),
]  # fmt: skip
MOST_ENTRIES = 8


def examples(usual: int) -> int:
    """How many changed checkpoints a test tries."""
    return int(os.environ.get("TRUELOOP_FUZZ", usual))


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to each part of nested dicts and lists; of a long list, to some of its entries."""
    yield path
    if isinstance(value, dict):
        for key, part in value.items():
            yield from places(part, (*path, key))
    elif isinstance(value, (list, tuple)):
        for k, part in enumerate(value[:MOST_ENTRIES]):
            yield from places(part, (*path, k))


def at(state: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        state = state[key]
    return state


def changed(state: dict[str, Any], path: tuple[Any, ...], how: str, what: Any) -> Any:
    """A copy of `state` with one change at `path`."""
    if not path:
        return what
    state = mutable(state)
    holder, key = at(state, path[:-1]), path[-1]
    if how == "replace":
        holder[key] = copy.deepcopy(what)
    elif how == "remove":
        del holder[key]
    elif how == "repeat" and isinstance(holder, list):
        holder.append(holder[key])
    elif how == "rename" and isinstance(holder, dict):
        holder[f"{key}?"] = holder.pop(key)
    elif _is_dense(holder[key]):
        holder[key] = holder[key].flatten()[:-1] if how == "shorten" else -holder[key].float()
    elif isinstance(holder[key], (int, float)):
        holder[key] = -holder[key] if how == "shorten" else holder[key] * 1000 + 7
    return state


def _is_dense(value: Any) -> bool:
    is_tensor = isinstance(value, Tensor) and value.layout is torch.strided
    return is_tensor and not value.is_complex()


def mutable(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: mutable(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [mutable(part) for part in value]
    return value


def changes() -> st.SearchStrategy[list[tuple[float, str, Any]]]:
    """One change or two: where (as a share of all places), how, and what is put there."""
    how = st.sampled_from(["replace"] * 4 + ["remove", "repeat", "rename", "shorten", "enlarge"])
    one = st.tuples(st.floats(0, 0.9999), how, st.sampled_from(range(len(JUNK))))
    return st.lists(one, min_size=1, max_size=2)


def resign(path: Path, state: dict[str, Any], made: list[tuple[float, str, int]]) -> Any:
    """Write `state` with these changes as the checkpoint `path`, with the right hashes."""
    for where, how, what in made:
        if isinstance(state, dict):
            ways = list(places(state))
            state = changed(state, ways[int(where * len(ways))], how, JUNK[what])
    facts = store.manifest(path)
    store.write(path, state, {name: facts[name] for name in ("epoch", "batch", "update", "best")})
    return state
