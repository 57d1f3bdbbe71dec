"""Recomputation of activations: blocks of the model whose activations are not kept for the backward
pass, but computed again there (activation checkpointing; Chen et al. 2016, "Training deep nets with
sublinear memory cost")."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from trueloop import _options
from trueloop.errors import ConfigError

Recompute = type[nn.Module] | str | int | Sequence[type[nn.Module] | str]


def recompute_blocks(model: nn.Module, recompute: Any, compile: Any = None) -> list[str]:
    """Let the blocks of `model` that `recompute` names keep only their inputs; returns their names.

    `recompute` is the class of the blocks, its name, `"Block/2"` for every second one of them (the
    first, the third, …), or a list of these; a number n means every n-th of the blocks that follow
    each other in the model; None or False for no block. A named block inside of a named block is
    part of the outer one. Modules, their names and their parameters stay the model's own, and the
    gradients are bitwise the same: dropout draws the same masks again, and running statistics
    (batch norm) change once. Modules that were made so before are left as they are.

    Raises `ConfigError` for blocks that the model does not have, and together with `compile`,
    where torch's compiler decides itself what it computes again.
    """
    if recompute is None or recompute is False:
        return []
    if compile is not None and compile is not False:
        raise ConfigError(
            f"recompute={_options.shown(recompute)} and compile={_options.shown(compile)} do not "
            "go together: a compiled graph decides itself what it computes again. Leave out one "
            "of them"
        )
    wanted = recompute if isinstance(recompute, (list, tuple)) else [recompute]
    if not wanted:
        raise ConfigError("recompute is empty: write recompute=None for no block")
    names = {name for each in wanted for name in _named_by(model, each)}
    outermost = [name for name in names if not _is_inside(name, names)]
    for name in sorted(outermost):
        _recompute(model.get_submodule(name))
    return sorted(outermost)


def _named_by(model: nn.Module, wanted: Any) -> list[str]:
    """The names of the blocks that are meant, in the model's order."""
    if isinstance(wanted, int) or (isinstance(wanted, str) and wanted.isdecimal()):
        number = int(wanted) if isinstance(wanted, str) else wanted
        found, every = repeated_blocks(model), _options.whole("recompute", number)
        if not found:
            raise ConfigError(
                "recompute: no blocks of one class follow each other in a ModuleList or a "
                f"Sequential of the model{_blocks_of(model)}"
            )
        return found[::every]
    kind, slash, stride = wanted.partition("/") if isinstance(wanted, str) else (wanted, "", "1")
    if slash and not (stride.isdecimal() and int(stride)):
        raise ConfigError(
            f"recompute={_options.shown(wanted)}: write a whole number from 1 after the slash, as "
            "in recompute='Block/2' for every second block"
        )
    if not isinstance(kind, str) and not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise ConfigError(
            f"recompute={_options.shown(wanted)} is not a class of modules: write the class of the "
            "model's blocks, its name, or 2 for every second block"
        )
    found = [name for name, module in model.named_modules() if name and _is_a(module, kind)]
    if not found:
        shown = kind if isinstance(kind, str) else kind.__name__
        raise ConfigError(f"recompute={shown!r}: the model has no such block{_blocks_of(model)}")
    return found[:: int(stride or 1)]


def _is_a(module: nn.Module, kind: str | type[nn.Module]) -> bool:
    return type(module).__name__ == kind if isinstance(kind, str) else isinstance(module, kind)


def repeated_blocks(model: nn.Module) -> list[str]:
    """The names of the model's blocks: the most modules of one class, two at least, with
    submodules, that follow each other in a list or a sequence; empty without any."""
    most: list[str] = []
    for place, container in model.named_modules():
        if not isinstance(container, (nn.ModuleList, nn.Sequential)):
            continue
        kinds: dict[type, list[str]] = {}
        for name, block in container.named_children():
            if next(block.children(), None) is not None:
                kinds.setdefault(type(block), []).append(f"{place}.{name}" if place else name)
        most = max([most, *kinds.values()], key=len)
    return most if len(most) > 1 else []


def _blocks_of(model: nn.Module) -> str:
    """The end of a message: the classes of modules that have submodules."""
    counts: dict[str, int] = {}
    for name, module in model.named_modules():
        if name and next(module.children(), None) is not None:
            counts[type(module).__name__] = counts.get(type(module).__name__, 0) + 1
    if not counts:
        return ", and no module in it has submodules: remove recompute"
    listed = ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))
    return f". It has {listed}: write e.g. recompute={max(counts, key=lambda x: counts[x])!r}"


def _is_inside(name: str, names: set[str]) -> bool:
    parts = name.split(".")
    return any(".".join(parts[:length]) in names for length in range(1, len(parts)))


def _recompute(block: nn.Module) -> None:
    """By torch's composable checkpoint: two hooks, no module around it and no new forward."""
    from torch.distributed._composable.checkpoint_activation import checkpoint

    if checkpoint.state(block) is None:
        has_buffers = next(block.buffers(), None) is not None
        checkpoint(block, context_fn=partial(_contexts, block) if has_buffers else None)


def _contexts(
    block: nn.Module,
) -> tuple[AbstractContextManager[None], AbstractContextManager[None]]:
    """Around the forward pass, and around what is computed again."""
    return nullcontext(), _same_buffers(block)


@contextmanager
def _same_buffers(block: nn.Module) -> Iterator[None]:
    """Buffers have the values that they had before, after it: batch norm's running statistics
    must not change a second time."""
    buffers: list[tuple[Tensor, Tensor]] = [(b, b.detach().clone()) for b in block.buffers()]
    try:
        yield
    finally:
        with torch.no_grad():
            for buffer, value in buffers:
                buffer.copy_(value)
