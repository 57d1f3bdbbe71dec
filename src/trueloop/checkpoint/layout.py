"""A saved state laid out as the live one is: of sharded tensors, this rank's shards."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import ranks
from trueloop.checkpoint.named_state import capture_named
from trueloop.checkpoint.sharded import ShardedState
from trueloop.checkpoint.tensor_shards import (
    OPTIMIZER,
    TRAIN_WEIGHTS,
    Path,
    Shard,
    at,
    is_sharded,
    leaves,
    replaced,
    shard_of,
)
from trueloop.errors import RunError
from trueloop.step import Step


def laid_out(state: dict[str, Any], step: Step, named: Mapping[str, Any]) -> dict[str, Any]:
    """`state` with every tensor that the live model, optimizer and named state have in shards in
    shards like theirs, and those still on the disk read, only this rank's part.

    Raises `RunError` for a file that cannot be read, and for a state that was saved in an
    accumulation window by one process.
    """
    if state["step"]["gradients"]:
        raise RunError(
            "the checkpoint was saved by one process inside an accumulation window, whose gradient "
            "several ranks cannot share: resume in one process up to the next update"
        )
    return _laid_out(state, state, _Live(step.model, step._gradients.held, capture_named(named)))


def model_state(state: dict[str, Any], model: nn.Module) -> dict[str, Any]:
    """The weights in a state that `load_checkpoint` gave, for `model.load_state_dict`: of sharded
    parameters, this rank's shards.

    All ranks call it together. Raises `RunError` for a file that cannot be read.
    """
    weights, live = {"model": state["model"]}, _Live(model, (), {})
    what = "the other ranks' reading of weights"
    found = ranks.on_all(lambda: _laid_out(state, weights, live), what)
    return found["model"]  # type: ignore[no-any-return]


def _laid_out(state: dict[str, Any], part: dict[str, Any], live: _Live) -> dict[str, Any]:
    """A `part` of `state` laid out as the `live` tensors are."""
    missing = state.missing if isinstance(state, ShardedState) else {}
    found: dict[Path, Any] = {}
    wanted: dict[str, Shard] = {}
    made: dict[str, Tensor] = {}
    for path, saved in leaves(part):
        layout, key = live.layout(path, saved), missing.get(path)
        if key is None:
            if layout is not None and not is_sharded(saved):
                found[path] = layout.of_whole(saved)
            continue
        if key not in made:
            made[key] = torch.empty(saved.shape, dtype=saved.dtype)
            if layout is not None:
                made[key] = layout.empty(saved.dtype)
            wanted[key] = shard_of(made[key])
        found[path] = made[key]
    if isinstance(state, ShardedState):
        state.fill(wanted)
    return replaced(dict(part), found)  # type: ignore[no-any-return]


def like_live(saved: Any, live: Any) -> Any:
    """`saved` itself, or, where `live` is in shards, this rank's shard of it."""
    if not is_sharded(live) or not isinstance(saved, Tensor) or is_sharded(saved):
        return saved
    return _Layout.like(live).of_whole(saved)


class _Layout:
    """How a sharded tensor is divided over the ranks."""

    def __init__(self, mesh: Any, placements: Any, box: Shard, stride: tuple[int, ...]) -> None:
        self._mesh = mesh
        self._placements = placements
        self._box = box
        self._stride = stride

    @classmethod
    def like(cls, tensor: Any) -> _Layout:
        """That of a DTensor."""
        return cls(tensor.device_mesh, tensor.placements, shard_of(tensor), tensor.stride())

    @classmethod
    def whole_on_each(cls, tensor: Tensor, beside: Any) -> _Layout:
        """That of a tensor of which every rank beside the DTensor `beside` has the whole."""
        from torch.distributed.tensor import Replicate

        mesh, box = beside.device_mesh, shard_of(tensor)
        here = torch.empty_like(box.tensor, device=beside.to_local().device)
        box = Shard(here, box.size, box.offsets)
        return cls(mesh, [Replicate()] * mesh.ndim, box, tensor.stride())

    def empty(self, dtype: torch.dtype) -> Tensor:
        """A tensor that is divided so, its values not set."""
        return self._made(torch.empty_like(self._box.tensor, dtype=dtype))

    def of_whole(self, tensor: Tensor) -> Tensor:
        """`tensor`, of which this rank has the whole, laid out so."""
        for dim, (start, length) in enumerate(
            zip(self._box.offsets, self._box.tensor.shape, strict=True)
        ):
            # A rank without rows begins beyond the last one.
            tensor = tensor.narrow(dim, min(start, tensor.shape[dim]), length)
        return self._made(tensor.to(self._box.tensor.device, copy=True).contiguous())

    def _made(self, local: Tensor) -> Tensor:
        from torch.distributed.tensor import DTensor

        return DTensor.from_local(
            local,
            self._mesh,
            self._placements,
            run_check=False,
            shape=self._box.size,
            stride=self._stride,
        )


class _Live:
    """The live tensors that a saved one is to be like."""

    def __init__(
        self, model: nn.Module, parameters: Sequence[Tensor], named: Mapping[str, Any]
    ) -> None:
        self._model = model.state_dict()
        self._parameters = parameters
        self._named = named

    def layout(self, path: Path, saved: Tensor) -> _Layout | None:
        """How the tensor at `path` is divided over the ranks; None for one that each has as a
        whole."""
        like = self._like(path)
        if not is_sharded(like):
            return None
        if like.shape == saved.shape:
            return _Layout.like(like)
        # An optimizer's sums over rows or columns; of a weight, a misfit that is found later.
        is_slot = path[: len(OPTIMIZER)] == OPTIMIZER and saved.ndim
        return _Layout.whole_on_each(saved, like) if is_slot else None

    def _like(self, path: Path) -> Any:
        if path[:1] == ("model",) or path[:2] in (("early_stop", "weights"), TRAIN_WEIGHTS):
            return self._model.get(path[-1])
        if path[: len(OPTIMIZER)] == OPTIMIZER:
            return at(self._parameters, path[len(OPTIMIZER) : len(OPTIMIZER) + 1])
        return at(self._named, path[1:]) if path[:1] == ("named",) else None
