"""Whether numbers are computed, or a program is merely traced, transformed, or asked for shapes."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._C import _functorch

from trueloop.doctor.runtime import graph

_modes: Any = getattr(torch._C, "_TorchDispatchModeKey", None)
_KEYS = tuple(
    getattr(_modes, name) for name in ("FAKE", "PROXY", "FUNCTIONAL") if hasattr(_modes, name)
)


def is_abstract(*given: Any) -> bool:
    """Nothing can be read off these tensors: they have no values (shapes alone are worked out, on
    the meta device or by fake tensors), or what is done to them now is recorded into somebody's
    trace, or done to a batch of them that `torch.func` makes one look like."""
    if _functorch.peek_interpreter_stack() is not None or torch._C._get_tracing_state() is not None:
        return True
    if any(torch._C._get_dispatch_mode(key) is not None for key in _KEYS):
        return True
    fx: Any = sys.modules.get("torch.fx._symbolic_trace")
    if fx is not None and getattr(fx, "_is_fx_tracing_flag", False):
        return True
    return any(each.is_meta for each in graph.tensors_in(given))
