"""One state divided over the ranks: what each of them writes, and the rest, which rank 0 writes.

- A sharded tensor (a DTensor): each rank writes the box of it that it has; of several ranks with
  the same box (replicas) one does, by turns.
- What is the same on all ranks under data-parallel training (parameters, the optimizer's tensors,
  the weights kept for the end): each rank writes some of the tensors, or rows of large ones, about
  the same number of bytes in all.
- The rest is rank 0's. What may differ from rank to rank (`own_parts`) is also written by other
  ranks, where it differs.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import torch
from torch import Tensor

from trueloop.errors import RunError

Path = tuple[Any, ...]

OPTIMIZER = ("step", "optimizer", "state")
TRAIN_WEIGHTS = ("step", "train_weights")
# Smaller ones cost more as entries of their own than within rank 0's file.
_SMALL = 1 << 12
# Of larger ones, several ranks write rows.
_PIECE = 1 << 22


@dataclass(frozen=True)
class Shard:
    """A box of a tensor, on one rank."""

    tensor: Tensor
    """Its values; its shape is the box's."""
    size: torch.Size
    """Of the whole tensor."""
    offsets: torch.Size
    """Where in it the box begins."""


@dataclass(frozen=True)
class Hole:
    """The place of a tensor that is written apart from the rest."""

    size: torch.Size
    dtype: torch.dtype


@dataclass
class Divided:
    """One rank's part of a state to write."""

    shards: dict[str, Shard] = field(default_factory=dict)
    """By the key of the whole tensor."""
    rest: dict[str, Any] = field(default_factory=dict)
    """On rank 0 all else, with a `Hole` for each tensor written apart; on the other ranks, what of
    it may differ from rank 0's."""
    same: dict[str, str] = field(default_factory=dict)
    """For the key of a tied weight, that of its twin, which is the one that is written."""
    parameters: Mapping[str, str] = field(default_factory=dict)
    """Names in the model's state that are of parameters."""

    def own(self) -> dict[Path, Any]:
        """The state that may differ from rank to rank: generators, the user's own state, and a
        model's buffers."""
        return own_parts(self.rest, self.parameters)

    def tensors(self) -> dict[str, Any]:
        """The tensors to copy for a write beside the training."""
        shards = {key: shard.tensor for key, shard in self.shards.items()}
        return {"shards": shards, "rest": self.rest}

    def copied(self, copy: dict[str, Any]) -> Divided:
        """The same with the copies of `tensors()`."""
        shards = {
            key: Shard(copy["shards"][key], shard.size, shard.offsets)
            for key, shard in self.shards.items()
        }
        return Divided(shards, copy["rest"], self.same, self.parameters)


def is_sharded(value: Any) -> bool:
    """Whether it is a DTensor; where nothing has imported those, nothing is one."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and isinstance(value, module.DTensor)


def shard_of(value: Tensor) -> Shard:
    """The box of `value` that this rank has; a plain tensor is one whole box."""
    if not is_sharded(value):
        return Shard(value.detach(), value.shape, torch.Size([0] * value.ndim))
    (chunk,) = value.__create_chunk_list__()  # type: ignore[attr-defined]
    local = value.detach().to_local()  # type: ignore[attr-defined]
    return Shard(local, value.shape, chunk.offsets)


def key_of(path: Path) -> str:
    """The name under which the tensor at `path` is written."""
    return "/".join(quote(str(part), safe="[] ") for part in path)


def at(tree: Any, path: Path) -> Any:
    """The part at `path` of nested dicts and lists; None where there is none."""
    for part in path:
        try:
            tree = tree[part]
        except (KeyError, IndexError, TypeError):
            return None
    return tree


def replaced(tree: Any, values: Mapping[Path, Any]) -> Any:
    """`tree` with `values` at their paths; copies what leads there, and shares the rest."""
    if () in values:
        return values[()]
    inner: dict[Any, dict[Path, Any]] = {}
    for path, value in values.items():
        inner.setdefault(path[0], {})[path[1:]] = value
    found = dict(tree) if isinstance(tree, dict) else list(tree)
    for key, parts in inner.items():
        found[key] = replaced(tree[key], parts)
    return found


def mapped(value: Any, change: Callable[[Path, Any], Any], path: Path = ()) -> Any:
    """Nested dicts, lists and tuples with `change(path, leaf)` done to each leaf; tuples become
    lists where a leaf of theirs is changed."""
    if isinstance(value, dict):
        return {key: mapped(part, change, (*path, key)) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        parts = [mapped(part, change, (*path, k)) for k, part in enumerate(value)]
        is_same = all(a is b for a, b in zip(parts, value, strict=True))
        return value if is_same else parts
    return change(path, value)


def divided(state: Mapping[str, Any], rank: int, count: int) -> Divided:
    """The part of `state` that rank `rank` of `count` writes; `capture` has taken it on all of
    them.

    Makes the same choices on all ranks without asking them. The tensors are the live ones. Raises
    `RunError` inside an accumulation window, whose gradients are different on each rank.
    """
    if state["step"]["gradients"]:
        raise RunError(
            "several ranks can save their state only between updates, and an accumulation window "
            "is open: save after a step(batch) whose record is updated, or call step.flush() first"
        )
    about = state["ranks"]
    found = Divided(parameters=about["parameters"])
    turns = _Turns(rank, count)

    def leave(path: Path, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor) or not (is_sharded(leaf) or _is_shared(path, leaf, about)):
            return leaf
        key, twin = key_of(path), _twin(path, about)
        if twin is not None:
            found.same[key] = key_of(twin)
        elif (shard := turns.mine(leaf)) is not None:
            assert key not in found.shards, f"two tensors of the state have the key {key}"
            found.shards[key] = shard
        return Hole(leaf.shape, leaf.dtype)

    tree = dict(state)
    tree["step"] = {**state["step"], "optimizer": by_name(state["step"]["optimizer"], about)}
    tree = mapped(tree, leave)
    tree["ranks"] = {"count": count, "same": found.same}
    found.rest = tree if rank == 0 else as_tree(own_parts(tree, found.parameters))
    return found


class _Turns:
    """Whose turn it is to write a tensor that several ranks have, or which rows of it."""

    def __init__(self, rank: int, count: int) -> None:
        self._rank = rank
        self._loads = [(0, number) for number in range(count)]
        self._number = 0

    def mine(self, tensor: Tensor) -> Shard | None:
        """The box of it that this rank writes; None if there is none."""
        if is_sharded(tensor):
            self._number += 1
            if _is_replica(tensor, self._number) and _has_values(tensor):
                return shard_of(tensor)
            return None
        rows = tensor.shape[0] if tensor.ndim else 1
        parts = max(min(len(self._loads), tensor.nbytes // _PIECE, rows), 1)
        takers = [heapq.heappop(self._loads) for _ in range(parts)]
        for load, rank in takers:
            heapq.heappush(self._loads, (load + tensor.nbytes // parts, rank))
        ranks = [rank for _, rank in takers]
        if self._rank not in ranks:
            return None
        part, whole = ranks.index(self._rank), shard_of(tensor)
        if parts == 1:
            return whole
        start, stop = part * rows // parts, (part + 1) * rows // parts
        offsets = torch.Size([start, *whole.offsets[1:]])
        return Shard(whole.tensor[start:stop], whole.size, offsets)


def _is_replica(tensor: Any, number: int) -> bool:
    """Whether this rank is the one, of those with the same box, that writes tensor `number`."""
    mesh, replica, replicas = tensor.device_mesh, 0, 1
    if mesh.get_coordinate() is None:
        return False
    for k, placement in enumerate(tensor.placements):
        if placement.is_replicate():
            replica = replica * mesh.size(k) + mesh.get_local_rank(k)
            replicas *= mesh.size(k)
    return bool(number % replicas == replica)


def _has_values(tensor: Any) -> bool:
    """Whether there is something to write: of fewer rows than ranks, some ranks have none."""
    return bool(tensor.to_local().numel() or (not tensor.numel() and not _first_offset(tensor)))


def _first_offset(tensor: Any) -> int:
    return sum(shard_of(tensor).offsets)


def _is_shared(path: Path, leaf: Tensor, about: Mapping[str, Any]) -> bool:
    """Whether data-parallel ranks have the same values there."""
    if leaf.layout is not torch.strided or leaf.is_quantized or leaf.is_meta:
        return False
    if leaf.nbytes < _SMALL:
        return False
    is_weight = (path[:1] == ("model",) and len(path) == 2) or (
        path[:2] in (("early_stop", "weights"), TRAIN_WEIGHTS) and len(path) == 3
    )
    return path[-1] in about["parameters"] if is_weight else path[:3] == OPTIMIZER


def _twin(path: Path, about: Mapping[str, Any]) -> Path | None:
    """Where a weight is written to which that at `path` is tied; None for a path with its own
    weight."""
    if path[:1] == ("model",) or path[:2] == ("early_stop", "weights"):
        first = about["parameters"].get(path[-1], path[-1])
        return None if first == path[-1] else (*path[:-1], first)
    return None


def own_parts(tree: Mapping[str, Any], parameters: Mapping[str, str]) -> dict[Path, Any]:
    """The parts of a state that may differ from rank to rank, as `Divided.own` lists them."""
    paths: list[Path] = [("rng",)]
    paths += [("named", name) for name in tree.get("named") or ()]
    paths += [
        ("model", name)
        for name, value in tree["model"].items()
        if name not in parameters and not isinstance(value, Hole)
    ]
    trained = at(tree, TRAIN_WEIGHTS) or {}
    paths += [(*TRAIN_WEIGHTS, name) for name in trained if name not in parameters]
    return {path: at(tree, path) for path in paths}


def as_tree(parts: Mapping[Path, Any]) -> dict[str, Any]:
    """The result of `own_parts`, as a part of a state."""
    tree: dict[str, Any] = {"model": {}}
    for path, value in parts.items():
        inner = tree
        for name in path[:-1]:
            inner = inner.setdefault(name, {})
        inner[path[-1]] = value
    return tree


def own_key(rank: int) -> str:
    """The name under which a rank's own state is written."""
    return f"rank/{rank}"


def by_name(optimizer: Mapping[str, Any], about: Mapping[str, Any]) -> dict[str, Any]:
    """An optimizer's state dict with the names of the parameters for their numbers."""
    names = dict(enumerate(about["optimizer"]))
    groups = [
        {**group, "params": [names[number] for number in group["params"]]}
        for group in optimizer["param_groups"]
    ]
    state = {names.get(number, number): slots for number, slots in optimizer["state"].items()}
    return {**optimizer, "state": state, "param_groups": groups}


def numbers_of(optimizer: Mapping[str, Any]) -> dict[str, int]:
    """For the names in what `by_name` gave, their numbers: their order there."""
    names = (name for group in optimizer["param_groups"] for name in group["params"])
    return {name: number for number, name in enumerate(names)}


def by_number(optimizer: Mapping[str, Any]) -> dict[str, Any]:
    """The opposite of `by_name`."""
    numbers = numbers_of(optimizer)
    groups = [
        {**group, "params": [numbers[name] for name in group["params"]]}
        for group in optimizer["param_groups"]
    ]
    state = {numbers.get(name, name): slots for name, slots in optimizer["state"].items()}
    return {**optimizer, "state": state, "param_groups": groups}


def leaves(tree: Any) -> Iterator[tuple[Path, Tensor]]:
    """Path and value of each tensor in nested dicts and lists. Each container is visited once, so
    that cycles end."""
    seen: set[int] = set()
    parts: list[tuple[Path, Any]] = [((), tree)]
    while parts:
        path, part = parts.pop()
        if isinstance(part, Tensor):
            yield path, part
        elif isinstance(part, (dict, list, tuple)) and id(part) not in seen:
            seen.add(id(part))
            named = part.items() if isinstance(part, dict) else enumerate(part)
            parts += [((*path, key), one) for key, one in named if not _is_leaf(one)]


def _is_leaf(value: Any) -> bool:
    return isinstance(value, (int, float, str)) or value is None
