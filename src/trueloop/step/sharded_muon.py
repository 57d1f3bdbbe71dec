"""torch's Muon on sharded matrices, bitwise as on whole ones.

Muon orthogonalises the whole matrix of a parameter's momentum, in bfloat16. Torch's own code would
do that with products and norms of shards, whose sums are rounded in a different order: after one
update the weights differ from an unsharded run's by some hundredths of the learning rate, and
differently for each number of ranks. Here each rank gathers one matrix at a time (in bfloat16, as
the iteration takes it), does the iteration on the whole, and applies its own rows of the result.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from trueloop import ranks
from trueloop.errors import ConfigError


def make_exact(optimizer: Optimizer) -> None:
    """Let a `torch.optim.Muon` update its sharded matrices as whole ones; any other optimizer is
    left as it is.

    Raises `ConfigError` where this version of torch has none of the functions that it takes.
    """
    if type(optimizer) is not getattr(torch.optim, "Muon", None):
        return
    orthogonalised, adjusted = _functions()
    hidden: list[tuple[Tensor, Tensor | None]] = []

    def update(one: Optimizer, args: Any, kwargs: Any) -> None:
        """Before torch's own step, which then finds no gradient of what is updated here."""
        for group in one.param_groups:
            for parameter in group["params"]:
                if hasattr(parameter, "placements") and parameter.grad is not None:
                    _update(one, group, parameter, orthogonalised, adjusted)
                    hidden.append((parameter, parameter.grad))
                    parameter.grad = None

    def put_back(one: Optimizer, args: Any, kwargs: Any) -> None:
        for parameter, gradient in hidden:
            parameter.grad = gradient
        hidden.clear()

    optimizer.register_step_pre_hook(update)
    optimizer.register_step_post_hook(put_back)


def _functions() -> tuple[Callable[..., Tensor], Callable[..., float]]:
    """Torch's own iteration, and its factor for the learning rate."""
    try:
        from torch.optim._muon import _adjust_lr, _zeropower_via_newtonschulz
    except ImportError:
        raise ConfigError(
            f"Muon under fsdp is not known for torch {torch.__version__}: install torch 2.13, or "
            "write parallel='ddp'"
        ) from None
    return _zeropower_via_newtonschulz, _adjust_lr


@torch.no_grad()
def _update(
    optimizer: Optimizer,
    group: dict[str, Any],
    parameter: Any,
    orthogonalised: Callable[..., Tensor],
    adjusted: Callable[..., float],
) -> None:
    """The update of one matrix by `torch.optim.Muon`, in the same order of operations."""
    gradient, state = parameter.grad, optimizer.state[parameter]
    if "momentum_buffer" not in state:
        state["momentum_buffer"] = torch.zeros_like(gradient)
    momentum = state["momentum_buffer"]
    momentum.lerp_(gradient, 1 - group["momentum"])
    ahead = gradient.lerp(momentum, group["momentum"]) if group["nesterov"] else momentum
    whole = orthogonalised(
        _gathered(ahead), group["ns_coefficients"], group["ns_steps"], group["eps"]
    )
    lr = float(group["lr"])
    parameter.mul_(1 - lr * group["weight_decay"])
    local = parameter.to_local()
    rows = _cut(whole, parameter).to(local.device)
    local.add_(rows, alpha=-adjusted(lr, group["adjust_lr_fn"], parameter.shape))


def _gathered(shards: Any) -> Tensor:
    """The whole matrix in bfloat16, where this rank computes."""
    from torch.distributed.tensor import DTensor

    mesh = shards.device_mesh
    local = shards.to_local().bfloat16().to(mesh.device_type)
    with ranks.waiting("the matrices of Muon"):
        found: Tensor = DTensor.from_local(
            local,
            mesh,
            shards.placements,
            run_check=False,
            shape=shards.shape,
            stride=shards.stride(),
        ).full_tensor()
    return found


def _cut(whole: Tensor, like: Any) -> Tensor:
    """This rank's part of it."""
    from torch.distributed.tensor import distribute_tensor

    cut = distribute_tensor(whole, like.device_mesh, like.placements, src_data_rank=None)
    return cut.to_local()
