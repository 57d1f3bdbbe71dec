"""The memory of one copy of the state: the state is copied into it, and written from there while
the training continues."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import torch
from torch import Tensor
from torch.utils._pytree import tree_leaves, tree_map_only

# Touched between two looks at whether to stop: some milliseconds.
_CHUNK = 1 << 24


class StagingBuffer:
    """Kept from save to save: fresh memory costs several times the copying into it, because the
    system hands it out page by page, at the first touch. `prepare` has that done in a thread,
    before the first save."""

    def __init__(self) -> None:
        self._copy: Any = None
        self._thread: threading.Thread | None = None
        self._enough = threading.Event()

    @property
    def is_prepared(self) -> bool:
        """Whether there is memory, or will be soon."""
        return self._copy is not None

    def prepare(self, state: Any) -> None:
        """Get the memory for a copy of `state` (plain data and tensors), in the background."""
        self._copy = _blank(state)
        self._thread = threading.Thread(target=self._touch, name="memory for a copy", daemon=True)
        self._thread.start()

    def copy(self, state: Any) -> Any:
        """`state` with its tensors copied to the CPU; the next call takes that memory again."""
        if self._thread is not None:
            # What it has not come to yet is touched by the copying, on all cores.
            self._enough.set()
            self._thread.join()
            self._thread = None
        self._copy = _copied(state, self._copy)
        return self._copy

    def _touch(self) -> None:
        for tensor in filter(torch.is_tensor, tree_leaves(self._copy)):
            start, size = tensor.data_ptr(), tensor.untyped_storage().nbytes()
            for offset in range(0, size, _CHUNK):
                if self._enough.is_set():
                    return
                # Neither numpy nor torch would do this on one core and without Python's lock.
                ctypes.memset(start + offset, 0, min(_CHUNK, size - offset))


def _blank(value: Any) -> Any:
    """Tensors on the CPU like those of `value`, in memory that nothing has touched."""
    return tree_map_only(
        Tensor, lambda t: torch.empty_like(t, device="cpu") if _is_plain(t) else None, value
    )


def _copied(value: Any, spare: Any) -> Any:
    """`value` with its tensors copied to the CPU, into those of `spare` where they fit."""
    if isinstance(value, Tensor):
        if not _fits(value, spare):
            return value.detach().to("cpu", copy=True)
        spare.copy_(value.detach())
        return spare
    if isinstance(value, dict):
        spares = spare if isinstance(spare, dict) else {}
        return {name: _copied(part, spares.get(name)) for name, part in value.items()}
    if isinstance(value, (list, tuple)):
        places = spare if isinstance(spare, (list, tuple)) else ()
        return type(value)(
            _copied(part, places[k] if k < len(places) else None) for k, part in enumerate(value)
        )
    return value


def _fits(value: Tensor, spare: Any) -> bool:
    """Whether a copy of `value` in `spare` is what a fresh copy would be."""
    return (
        isinstance(spare, Tensor)
        and _is_plain(value)
        and _is_plain(spare)
        and (spare.shape, spare.dtype, spare.stride()) == (value.shape, value.dtype, value.stride())
    )


def _is_plain(tensor: Tensor) -> bool:
    """Whether its values are a block of memory, with strides."""
    return tensor.layout is torch.strided and not tensor.is_quantized
