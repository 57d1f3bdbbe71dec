"""Whether numbers are computed, or a program is merely traced, transformed, or asked for shapes."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._C import _functorch

from trueloop.doctor.runtime import graph

_infra: Any = getattr(torch._C, "_TorchDispatchModeKey", None)
_KEYS = tuple(
    getattr(_infra, name) for name in ("FAKE", "PROXY", "FUNCTIONAL") if hasattr(_infra, name)
)
_transforms: Any = _functorch.peek_interpreter_stack
_traces: Any = torch._C._get_tracing_state
_modes: Any = torch._C._len_torch_dispatch_stack
"""How many dispatch modes are on."""


def is_abstract(*given: Any) -> bool:
    """Nothing can be read off these tensors: they have no values (shapes alone are worked out, on
    the meta device or by fake tensors), or what is done to them now is recorded into somebody's
    trace, or done to a batch of them that `torch.func` makes one look like."""
    if _transforms() is not None or _traces() is not None:
        return True
    if _modes() and any(torch._C._get_dispatch_mode(key) is not None for key in _KEYS):
        return True
    fx: Any = sys.modules.get("torch.fx._symbolic_trace")
    if fx is not None and getattr(fx, "_is_fx_tracing_flag", False):
        return True
    if len(given) == 1 and type(given[0]) is torch.Tensor:  # by far the most
        return given[0].is_meta
    return any(each.is_meta for each in graph.tensors_in(given))
