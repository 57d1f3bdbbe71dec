"""Batches on their way to the device: pinned memory, copies beside the computation, one ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor


def to_device(batches: Iterator[Any], device: torch.device | None) -> Iterator[Any]:
    """The same batches on `device`; None leaves them where they are.

    To a CUDA device they are copied beside the computation, one batch ahead of it, and the host
    never waits if the source pins them. Elsewhere each is moved when it is asked for, which is
    nothing at all for a CPU tensor that stays on the CPU.
    """
    if device is None:
        return batches
    if device.type == "cuda":
        return _ahead(batches, device)
    return (
        map_batch(batch, lambda part: part.to(device), lambda part: part.to(device))
        for batch in batches
    )


def pin(batch: Any) -> Any:
    """`batch` with its CPU tensors in page-locked memory, from which a copy needs no wait."""
    return map_batch(batch, lambda tensor: tensor.pin_memory() if tensor.is_cpu else tensor)


def map_batch(
    value: Any,
    on_tensor: Callable[[Tensor], Any],
    on_movable: Callable[[Any], Any] = lambda part: part,
) -> Any:
    """`value` with its tensors changed, and the objects that have a `to` method.

    Searched in tuples, named tuples, lists and mappings, whose types are kept. What is neither,
    numbers and text, say, stays as it is.
    """
    if isinstance(value, Tensor):
        return on_tensor(value)
    if callable(getattr(value, "to", None)):
        return on_movable(value)
    if isinstance(value, Mapping):
        changed = {key: map_batch(part, on_tensor, on_movable) for key, part in value.items()}
        return changed if type(value) is dict else type(value)(changed)  # type: ignore[call-arg]
    if isinstance(value, (tuple, list)):
        parts = [map_batch(part, on_tensor, on_movable) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
    return value


def _ahead(batches: Iterator[Any], device: torch.device) -> Iterator[Any]:
    """Copies on a separate CUDA stream, one batch ahead of the one handed out."""
    stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    waiting: tuple[Any, torch.cuda.Event] | None = None
    for batch in batches:
        following = _depart(batch, stream, device)
        if waiting is not None:
            yield _arrive(*waiting, device)
        waiting = following
    if waiting is not None:
        yield _arrive(*waiting, device)


def _depart(
    batch: Any, stream: torch.cuda.Stream, device: torch.device
) -> tuple[Any, torch.cuda.Event]:
    """Start the copies from the CPU; the event marks their end."""

    def copy(tensor: Tensor) -> Tensor:
        # A tensor that some stream of an accelerator may still be writing waits for `_arrive`.
        return tensor.to(device, non_blocking=True) if tensor.is_cpu else tensor

    with torch.cuda.stream(stream):
        moved = map_batch(batch, copy)
    return moved, stream.record_event()


def _arrive(moved: Any, copied: torch.cuda.Event, device: torch.device) -> Any:
    """Make the computing stream (not the host) wait for the copies, and own their memory."""
    computing = torch.cuda.current_stream(device)
    computing.wait_event(copied)

    def own(tensor: Tensor) -> Tensor:
        # Its memory belongs to the copying stream, whose allocator would otherwise give it to a
        # later batch while the computing stream still reads it.
        here = tensor.to(device)
        here.record_stream(computing)
        return here

    # An object that moves itself hides its tensors from `own`: it is copied here, on the computing
    # stream, to which its memory then belongs.
    return map_batch(moved, own, lambda part: part.to(device))
