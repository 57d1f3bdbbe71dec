"""Whether two things are the same to the bit."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn


def same(a: Any, b: Any) -> bool:
    """Tensors, arrays, the states of modules, and what holds such, in the same order."""
    if isinstance(a, nn.Module):
        return same(a.state_dict(), b.state_dict())
    if isinstance(a, Tensor):
        return a.dtype == b.dtype and torch.equal(a.to_dense(), b.to_dense())
    if isinstance(a, np.ndarray):
        return bool(a.dtype == b.dtype and np.array_equal(a, b))
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(same(a[name], b[name]) for name in a)
    if isinstance(a, Iterable) and not isinstance(a, (str, bytes)):
        a, b = list(a), list(b)
        return len(a) == len(b) and all(map(same, a, b))
    return type(a) is type(b) and repr(a) == repr(b)
