"""Whether numbers are computed, or a program is merely traced, transformed, or asked for shapes."""

from __future__ import annotations

import sys
from typing import Any

import torch
from torch._C import _functorch

from trueloop.doctor.live.hub import dispatch_modes, no_torch_function
from trueloop.doctor.live.objects import autograd_graph, inspection

_infra: Any = getattr(torch._C, "_TorchDispatchModeKey", None)
_KEYS = tuple(
    getattr(_infra, name) for name in ("FAKE", "PROXY", "FUNCTIONAL") if hasattr(_infra, name)
)
_transforms: Any = _functorch.peek_interpreter_stack
_traces: Any = torch._C._get_tracing_state
function_modes: Any = torch._C._len_torch_function_stack
"""How many modes are on that are given the functions of torch."""


def is_transformed() -> bool:
    """Tensors are wrapped by `torch.func`, or what is done to them is recorded by `torch.jit`."""
    return _transforms() is not None or _traces() is not None


def is_abstract(*given: Any) -> bool:
    """These tensors have no values to read (only shapes are worked out, on the meta device or by
    fake tensors), or operations on them now are recorded into a trace, or done to a batch of them
    that `torch.func` presents as one."""
    if is_transformed():
        return True
    if dispatch_modes() and any(torch._C._get_dispatch_mode(key) is not None for key in _KEYS):
        return True
    fx: Any = sys.modules.get("torch.fx._symbolic_trace")
    if fx is not None:
        known = hasattr(fx, "_is_fx_tracing_flag")  # a variable of the module, up to torch 2.13
        if fx._is_fx_tracing_flag if known else fx._get_is_fx_tracing():
            return True
    if len(given) == 2 and not given[1] and type(given[0]) is tuple and len(given[0]) == 1:
        given = given[0]  # the arguments of a call, by place and by name
    if len(given) == 1 and type(given[0]) is torch.Tensor and not function_modes():
        return given[0].is_meta  # by far the most
    with no_torch_function():
        return any(each.is_meta or _is_fake(each) for each in autograd_graph.tensors_in(given))


def _is_fake(tensor: torch.Tensor) -> bool:
    if type(tensor) is torch.Tensor or type(tensor) is torch.nn.Parameter:
        return False
    fake: Any = sys.modules.get("torch._subclasses.fake_tensor")
    return fake is not None and inspection.is_a(tensor, fake.FakeTensor)
