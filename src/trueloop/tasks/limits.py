"""Upper limits of options, and a training's share of the machine's memory.

Values far beyond what anybody means (`--layers 100000`) are slips of the finger that would hang the
machine: they are refused before anything is built.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from trueloop.errors import ConfigError

MOST_EPOCHS = 1_000_000
MOST_BATCH = 16_777_216
MOST_RATE = 1_000.0
MOST_NORM = 1e12
MOST_MINUTES = 10_000_000.0
MOST_UNITS = 16_384
MOST_LAYERS = 64
MOST_CHANNELS = 1_024
MOST_SIDE = 1_024
MOST_GIGABYTES = 1_000_000.0

_SHARE_OF_MEMORY = 0.9
_STATE = 3
"""The copies of the weights that AdamW needs beside them: gradients and two averages."""
_OF_OUTPUTS = 3
"""Copies of the outputs: themselves, what the loss keeps of them, and their gradient."""
_GIB = 2**30


def check_range(
    option: str,
    value: float | None,
    least: float,
    most: float,
    *,
    example: object,
    unit: str = "",
    open_below: bool = False,
) -> None:
    """Raise `ConfigError` unless `value` is None or from `least` to `most`, both included.

    `open_below` leaves `least` itself out. The message ends with `example`, a value to write.
    """
    if value is None:
        return
    above = value > least if open_below else value >= least
    if above and value <= most:  # neither holds for NaN
        return
    low = f"above {_shown(least)}, up to" if open_below else f"{_shown(least)} to"
    high = f"{_shown(most)} {unit}".rstrip()
    raise ConfigError(
        f"{option} must be {low} {high}, not {_shown(value)}: write {option} {example}"
    )


def _shown(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.15g}"


def training_memory(
    build: Callable[[], nn.Module], inputs: Callable[[], tuple[Tensor, ...]]
) -> int:
    """Bytes that one update takes: weights, gradients, optimizer state and activations.

    Model and inputs are made on torch's meta device, where nothing is allocated or computed: what
    autograd would keep for the backward is counted.
    """
    kept: dict[int, int] = {}

    def count(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage._cdata] = storage.nbytes()
        tensors.append(tensor)  # or a later storage could take the place of this one
        return tensor

    tensors: list[Tensor] = []
    with torch.device("meta"):
        model = build()
        sizes = [(p.numel() * p.element_size(), p.requires_grad) for p in model.parameters()]
        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            outputs = model(*inputs())
    made = sum(tensor.nbytes for tensor in tree_leaves(outputs) if isinstance(tensor, Tensor))
    own = {p.untyped_storage()._cdata for p in model.parameters()}
    activations = sum(size for storage, size in kept.items() if storage not in own)
    del outputs
    weights = sum(size for size, _ in sizes)
    training = sum(size for size, trains in sizes if trains)
    return weights + _STATE * training + activations + _OF_OUTPUTS * made


def machine_memory() -> int | None:
    """Bytes that this process may use: the machine's, or its container's where that is less; None
    if the system does not provide it."""
    try:
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):
        return None
    for limit in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            text = Path(limit).read_text(encoding="ascii").strip()
        except OSError:
            continue
        if text.isdigit() and text.isascii():
            found = min(found, int(text))
    return found


def check_memory(needed: int, *, what: str, remedy: str) -> None:
    """Raise `ConfigError` if `needed` bytes do not fit into the machine's memory."""
    there = machine_memory()
    if there is not None and needed > _SHARE_OF_MEMORY * there:
        raise ConfigError(
            f"{what} would take about {needed / _GIB:,.1f} GiB of memory, and this machine has "
            f"{there / _GIB:,.1f} GiB: {remedy}"
        )
