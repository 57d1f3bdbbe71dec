"""Whether an optimizer could use torch's fused implementation, and whether that is faster here."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from time import perf_counter
from typing import TYPE_CHECKING, Any

import torch
from torch import optim
from torch.optim.adagrad import adagrad as adagrad_function
from torch.optim.adam import adam as adam_function
from torch.optim.sgd import sgd as sgd_function

if TYPE_CHECKING:
    from torch.optim import Optimizer

_KINDS = {
    optim.Adam: ("cpu", "cuda"),
    optim.AdamW: ("cpu", "cuda"),
    optim.SGD: ("cpu", "cuda"),
    optim.Adagrad: ("cpu",),
}
"""Kind -> devices that it has been fused for since torch 2.6."""
_LARGEST = 1 << 20
"""Numbers in the copies that it is tried out on."""
_TIMES = 5


def could_be_fused(optimizer: Optimizer) -> bool:
    """A fused implementation exists for it and all its parameters, and the program has not chosen
    an implementation."""
    devices = _KINDS.get(type(optimizer))
    if devices is None or "fused" not in inspect.signature(type(optimizer)).parameters:
        return False
    decided = ("fused", "foreach", "capturable", "differentiable")
    for group in optimizer.param_groups:
        if any(group.get(name) for name in decided) or isinstance(group["lr"], torch.Tensor):
            return False
        if group.get("fused") is False or group.get("foreach") is False:
            return False
        if not all(_is_plain(each, devices) for each in group["params"]):
            return False
    return True


def _is_plain(parameter: torch.Tensor, devices: tuple[str, ...]) -> bool:
    gradient = parameter.grad
    return (
        type(parameter) in (torch.Tensor, torch.nn.Parameter)
        and parameter.device.type in devices
        and parameter.is_floating_point()
        and (gradient is None or (not gradient.is_sparse and gradient.dtype == parameter.dtype))
    )


def ratio_of_fused(optimizer: Optimizer) -> float | None:
    """How long a fused step takes on copies of some of its parameters, as a multiple of how long
    the present one takes; None where that cannot be tried out without waiting for a device."""
    group = optimizer.param_groups[0]
    chosen: list[Any] = []
    size = 0
    for each in group["params"]:
        if each.grad is None:
            continue
        if each.device.type != "cpu":
            return None
        if size + each.numel() <= _LARGEST:
            size += each.numel()
            chosen.append(each)
    if not chosen:
        return None
    with torch.no_grad():
        step = _step_of(type(optimizer), group, chosen)
        return _fastest(step, True) / _fastest(step, False)


def _fastest(step: Callable[[bool], None], fused: bool) -> float:
    times = []
    for _ in range(_TIMES):
        begin = perf_counter()
        step(fused)
        times.append(perf_counter() - begin)
    return min(times[1:])  # the first one warms up


def _step_of(kind: type, group: dict[str, Any], chosen: list[Any]) -> Callable[[bool], None]:
    """A step of this kind on copies; its argument: fused."""
    copies = [each.detach().clone() for each in chosen]
    gradients = [each.grad.detach() for each in chosen]
    first = [torch.zeros_like(each) for each in copies]
    second = [torch.zeros_like(each) for each in copies]
    counts = [torch.tensor(1.0, device="cpu") for _ in copies]
    common: dict[str, Any] = {"lr": 1e-12, "weight_decay": group.get("weight_decay", 0)}
    common |= {"maximize": False, "foreach": False}

    def adam(fused: bool) -> None:
        beta1, beta2 = 0.9, 0.999
        adam_function(
            copies, gradients, first, second, [], counts, fused=fused, amsgrad=False,
            beta1=beta1, beta2=beta2, eps=1e-8, **common,
        )  # fmt: skip

    def sgd(fused: bool) -> None:
        momentum = group["momentum"]
        buffers: list[Any] = list(first) if momentum else [None] * len(copies)
        sgd_function(
            copies, gradients, buffers, fused=fused, momentum=momentum, nesterov=False,
            dampening=0, **common,
        )  # fmt: skip

    def adagrad(fused: bool) -> None:
        adagrad_function(
            copies, gradients, first, counts, fused=fused, lr_decay=0, eps=1e-10,
            has_sparse_grad=False, **common,
        )  # fmt: skip

    steps: dict[Any, Callable[[bool], None]] = {optim.SGD: sgd, optim.Adagrad: adagrad}
    return steps.get(kind, adam)
