"""A checkpoint that several ranks have written: read whole in one process, or each rank its part.

    state.pt    {…, "model": {"0.weight": a tensor without values, …}, "ranks": {"count", "same"}}

In it the optimizer's state has the parameters' names for their numbers.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from trueloop.checkpoint import store
from trueloop.checkpoint.tensor_shards import (
    OPTIMIZER,
    Path as Place,
    Shard,
    at,
    by_number,
    key_of,
    leaves,
    numbers_of,
    own_key,
    replaced,
)
from trueloop.errors import RunError
from trueloop.files import read_bytes
from trueloop.shapes import COUNT, Anything, DictOf, ListOf, problem

_MOST_BYTES = 1 << 32
_STORED = {
    "model": DictOf(str, Anything),
    "step": {
        "optimizer": {
            "state": DictOf(object, Anything),
            "param_groups": ListOf({"params": ListOf(str)}),
        }
    },
    "ranks": {"count": COUNT, "same": DictOf(str, str)},
}


class ShardedState(dict[str, Any]):
    """A state whose large tensors are still on the disk: they have a shape and no values here
    (`meta`), until `restore` reads this rank's part of each.

    `ranks` in it is {"count": how many ranks saved it, "rank": whose own state it has}.
    """

    def __init__(
        self, state: Mapping[str, Any], folder: Path, index: Any, missing: dict[Place, str]
    ) -> None:
        super().__init__(state)
        self.folder = folder
        self._index = index
        self.missing = missing
        """Where a tensor is missing, and under which key it is written."""

    def with_parts(self, state: Mapping[str, Any]) -> ShardedState:
        """The same checkpoint, with other values at the same places."""
        return ShardedState(state, self.folder, self._index, self.missing)

    def fill(self, wanted: Mapping[str, Shard]) -> None:
        """Read boxes of tensors, by key. Raises `RunError` where a file does not have them."""
        from trueloop.checkpoint.dcp import fill

        check = torch.sparse.check_sparse_tensor_invariants(enable=True)  # type: ignore[no-untyped-call]
        try:
            with check:
                fill(self.folder, self._index, wanted)
        except Exception as error:  # bytes that are not a tensor make the readers raise anything
            raise _unreadable(self.folder, error) from None

    def whole(self) -> dict[str, Any]:
        """The state with all its tensors, on the CPU."""
        tensors: dict[str, Tensor] = {}
        for place, key in self.missing.items():
            if key not in tensors:
                there = at(self, place)
                tensors[key] = torch.empty(there.shape, dtype=there.dtype)
        self.fill({k: Shard(t, t.shape, torch.Size([0] * t.ndim)) for k, t in tensors.items()})
        found = {place: tensors[key] for place, key in self.missing.items()}
        return replaced(dict(self), found)  # type: ignore[no-any-return]

    def imagined(self) -> dict[str, Any]:
        """The state with a tensor of zeros, which take no memory, for each that is missing: for
        checks that look at shapes and dtypes."""
        found = {}
        for place in self.missing:
            there = at(self, place)
            found[place] = torch.zeros((), dtype=there.dtype).expand(there.shape)
        return replaced(dict(self), found)  # type: ignore[no-any-return]


def opened(path: Path, state: dict[str, Any], rank: int, count: int) -> ShardedState:
    """The checkpoint `path` that several ranks have written, with `state` in state.pt.

    If it was saved by `count` ranks, it has the own state of rank `rank`, else that of rank 0.
    Raises `RunError` where it is damaged.
    """
    if found := problem(state, _STORED):
        raise RunError(f"{path}: {found}: use a different checkpoint")
    index = _index(path)
    about = state["ranks"]
    is_same = about["count"] == count and own_key(rank) in index.state_dict_metadata
    if is_same:
        _overlay(state, _own(path, index, own_key(rank)))
    keys = _keys(path, state, about["same"], index.state_dict_metadata)
    numbers = numbers_of(state["step"]["optimizer"])
    state = {
        **state,
        "step": {**state["step"], "optimizer": by_number(state["step"]["optimizer"])},
        "ranks": {"count": about["count"], "rank": rank if is_same else 0},
    }
    return ShardedState(state, path, index, {_numbered(p, numbers): k for p, k in keys.items()})


def _index(path: Path) -> Any:
    from trueloop.checkpoint.dcp import INDEX, read_index

    files = store.manifest(path)["files"]
    sizes = {name: said["size"] for name, said in files.items()}
    try:
        return read_index(read_bytes(path / INDEX, _MOST_BYTES), sizes)
    except Exception as error:  # any bytes may stand there
        raise _unreadable(path / INDEX, error) from None


def _own(path: Path, index: Any, key: str) -> Any:
    """A rank's own state, from its tensor of bytes."""
    saved = index.state_dict_metadata[key]
    try:
        if saved.properties.dtype is not torch.uint8 or len(saved.size) != 1:
            raise ValueError("it is not a row of bytes")
        content = torch.empty(saved.size, dtype=torch.uint8)
        holder = ShardedState({}, path, index, {})
        holder.fill({key: Shard(content, content.shape, torch.Size([0]))})
        state = torch.load(io.BytesIO(content.numpy().data), map_location=None, weights_only=True)
        if not isinstance(state, dict):
            raise ValueError("it is not a dict")
        return state
    except RunError:
        raise
    except Exception as error:  # any bytes may stand there
        raise _unreadable(path / key, error) from None


def _overlay(state: dict[str, Any], own: dict[Any, Any]) -> None:
    """Put a rank's own state in the place of rank 0's."""
    for name, part in own.items():
        state[name] = _merged(state.get(name), part, _DEPTHS.get(name, 0))


_DEPTHS = {"model": 1, "named": 1, "step": 2}
"""The depth of the entries that differ from rank to rank; other parts differ as a whole."""


def _merged(there: Any, own: Any, depth: int) -> Any:
    if not depth or not isinstance(there, dict) or not isinstance(own, dict):
        return own
    return {
        **there,
        **{name: _merged(there.get(name), part, depth - 1) for name, part in own.items()},
    }


def _keys(
    path: Path, state: dict[str, Any], same: Mapping[str, str], saved: Mapping[str, Any]
) -> dict[Place, str]:
    """The places of the tensors that are written apart, and their keys."""
    keys: dict[Place, str] = {}
    for place, leaf in leaves(state):
        if not leaf.is_meta:
            continue
        key = same.get(key_of(place), key_of(place))
        there = saved.get(key)
        if there is None or (there.size, there.properties.dtype) != (leaf.shape, leaf.dtype):
            name = ".".join(str(part) for part in place)[:80]
            raise RunError(f"{path}: {name} is not in any of its files: use a different checkpoint")
        keys[place] = key
    return keys


def _numbered(place: Place, numbers: Mapping[str, int]) -> Place:
    if place[: len(OPTIMIZER)] != OPTIMIZER:
        return place
    name = place[len(OPTIMIZER)]
    return (*OPTIMIZER, numbers.get(name, name), *place[len(OPTIMIZER) + 1 :])


def _unreadable(file: Path, error: Exception) -> RunError:
    reason = str(error).splitlines()[0] if str(error) else type(error).__name__
    return RunError(f"{file} cannot be read ({reason[:120]}): use a different checkpoint")
