"""How much of an update can be one compiled graph, and why not more."""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor

from trueloop import ranks
from trueloop.step import update_graph
from trueloop.step.base import StepBase

UPDATE, GRADIENT, MODEL, EAGER = "update", "gradient", "model", "eager"
"""The part that is compiled: the whole update; forward, loss and backward; only the model;
nothing."""
NAMES = {
    GRADIENT: "only the forward, the loss and the backward are compiled",
    MODEL: "only the model is compiled",
    EAGER: "nothing is compiled",
}


class Extent(NamedTuple):
    """The largest part that can be compiled, and why not more; empty if all can."""

    level: str
    reason: str = ""


def extent(step: StepBase) -> Extent:
    """As far as the parts of the step say; tracing may find more."""
    if reason := _nothing():
        return Extent(EAGER, reason)
    reason = _no_gradient(step)
    if reason:
        return Extent(MODEL, reason)
    reason = _no_update(step)
    return Extent(GRADIENT, reason) if reason else Extent(UPDATE)


def _no_gradient(step: StepBase) -> str:
    """Why forward and backward cannot be one graph."""
    if ranks.is_distributed() or step._parallel.view is not step.model:
        return "the ranks exchange gradients within the backward"
    if step._unfreezing is not None:
        return "parts of the model are unfrozen during the run"
    parameters = step._gradients.parameters
    devices = {p.device for p in parameters}
    if len(devices) > 1:
        return "the parameters are on several devices"
    if next(iter(devices)).type not in ("cpu", "cuda"):
        return f"the device is {next(iter(devices))}"
    if any(p.is_complex() for p in parameters):
        return "there are complex parameters"
    if any(p._backward_hooks or p._post_accumulate_grad_hooks for p in parameters):
        return "a parameter has a hook on its gradient"
    if step.precision.name == "fp16" and not _one(step):
        return "one loss scale serves several optimizers"
    return ""


def _global_hooks() -> list[object]:
    from torch.optim import optimizer as optim

    hooks = (optim._global_optimizer_pre_hooks, optim._global_optimizer_post_hooks)
    return [hook for each in hooks for hook in each.values()]


def _is_users(hook: object) -> bool:
    """Not the doctor's, which knows of compiled updates."""
    return not str(getattr(hook, "__module__", "")).startswith("trueloop.")


def _one(step: StepBase) -> bool:
    return len(step.optimizers) == 1


def _no_update(step: StepBase) -> str:
    """Why the update cannot be in that graph too."""
    if not _one(step):
        return f"the step has {len(step.optimizers)} optimizers"
    optimizer = step.optimizers[0]
    name = type(optimizer).__name__
    if type(optimizer) not in update_graph.KINDS:
        return f"{name} is not torch's Adam, AdamW or SGD"
    if optimizer._optimizer_step_pre_hooks or optimizer._optimizer_step_post_hooks:
        return f"{name} has a hook on its step"
    if any(map(_is_users, _global_hooks())):
        return "there is a hook on the steps of all optimizers"
    if step.outliers is not None:
        return "outliers are judged by the norms of the updates before"
    if step._modes.any and step._average is None:
        return f"{name} has modes"
    for group in optimizer.param_groups:
        if group.get("differentiable"):
            return f"{name} is differentiable"
        if any(isinstance(each, Tensor) for each in group.get("betas", ())):
            return "the betas are tensors"
        if isinstance(group["lr"], Tensor) and group["lr"].device.type != "cpu":
            return "the learning rate is a tensor on the device"
        on_device = group.get("fused") or group.get("capturable") or "betas" not in group
        if step.device.type == "cuda" and not on_device:
            return f"{name} counts its steps on the CPU (write fused=True)"
    return ""


def _nothing() -> str:
    """Why nothing can be compiled here."""
    import torch._dynamo

    return "TORCH_COMPILE_DISABLE is set" if torch._dynamo.config.disable else ""
