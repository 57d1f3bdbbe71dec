"""The gradient measured, divided and clipped in one pass."""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from trueloop import _options, ranks
from trueloop.errors import ConfigError
from trueloop.step.accumulate import PLAIN


def check_limits(clip_norm: float | None, clip_value: float | None) -> None:
    """Raise `ConfigError` unless each limit is None or a number above 0, and at most one is set."""
    for name, limit in (("clip_norm", clip_norm), ("clip_value", clip_value)):
        if limit is not None:
            _options.positive(name, limit)
    if clip_norm is not None and clip_value is not None:
        raise ConfigError("clip_norm and clip_value are both set: write one of them")


def norms(gradients: list[Tensor]) -> tuple[Tensor, list[Tensor]]:
    """The L2 norm of each gradient, over all of its shards: a vector on the first gradient's
    device. And of sharded gradients (`DTensor`) this rank's shards, of others themselves: what is
    done to them entry by entry, in place, is done to the gradients."""
    if set(map(type, gradients)) == PLAIN:
        # The number of the device, -1 for the CPU: asked faster than the device itself.
        if len(set(map(Tensor.get_device, gradients))) == 1:
            return torch.stack(torch._foreach_norm(gradients)), gradients
        return _norms(gradients), gradients
    with torch.no_grad():
        local = [g.to_local() if hasattr(g, "to_local") else g for g in gradients]
    return _over_shards(_norms(local), gradients), local


def _over_shards(found: Tensor, gradients: list[Tensor]) -> Tensor:
    """`found`, the norms of this rank's shards, made those of all shards."""
    by_mesh: dict[Any, list[int]] = {}
    sharded: list[tuple[int, Any]] = [
        (k, gradient) for k, gradient in enumerate(gradients) if hasattr(gradient, "placements")
    ]
    for k, gradient in sharded:
        by_mesh.setdefault((gradient.device_mesh, gradient.placements), []).append(k)
    for (mesh, placements), members in by_mesh.items():
        # In double precision a square overflows only where the norm does.
        squares = found[members].double().square()
        for dim, placement in enumerate(placements):
            if placement.is_shard():
                with ranks.waiting("the gradient norm of all shards"):
                    dist.all_reduce(squares, group=mesh.get_group(dim))
            else:
                assert placement.is_replicate(), f"a gradient that is {placement}"
        found[members] = squares.sqrt().to(found.dtype)
    return found


def _norms(gradients: list[Tensor]) -> Tensor:
    """Of gradients that may be on several devices."""
    by_device: dict[torch.device, list[int]] = {}
    for k, gradient in enumerate(gradients):
        by_device.setdefault(gradient.device, []).append(k)
    found: list[Tensor] = [gradients[0]] * len(gradients)
    for members in by_device.values():
        for k, norm in zip(
            members, torch._foreach_norm([gradients[k] for k in members]), strict=True
        ):
            found[k] = norm.to(gradients[0].device)
    return torch.stack(found)


def divide_and_clip(
    gradients: list[Tensor],
    norm: Tensor,
    correction: float | Tensor,
    clip_norm: float | None,
    clip_value: float | None,
    outlier: Tensor | None = None,
) -> None:
    """Multiply the gradients in place by `correction` and clip them, touching each once.

    `norm` is the global norm after the correction. The coefficient is that of
    `torch.nn.utils.clip_grad_norm_`, max_norm / (norm + 1e-6) and at most 1, bit for bit. `outlier`
    is a coefficient of a second limit; the smaller one applies.
    """
    factor, coefficient = correction, outlier
    # Where reading is free, a coefficient of 1 saves the pass: x * 1.0 is x, bit for bit. The
    # margin is for the rounding of the norm's own dtype, up to 2^-8 in bfloat16.
    if clip_norm is not None and not (norm.is_cpu and norm.item() < clip_norm * (1 - 1e-2) - 1e-6):
        coefficient = torch.clamp(clip_norm / (norm + 1e-6), max=1.0)
        if outlier is not None:
            coefficient = torch.minimum(coefficient, outlier)
    if coefficient is not None:
        factor = (
            coefficient
            if type(correction) is float and correction == 1.0
            else (correction * coefficient)
        )
    if type(factor) is not float or factor != 1.0:
        _multiply(gradients, factor)
    if clip_value is not None:
        torch._foreach_clamp_min_(gradients, -clip_value)
        torch._foreach_clamp_max_(gradients, clip_value)


def _multiply(gradients: list[Tensor], factor: float | Tensor) -> None:
    if not isinstance(factor, Tensor) or all(g.device == factor.device for g in gradients):
        torch._foreach_mul_(gradients, factor)
        return
    for gradient in gradients:
        gradient.mul_(factor.to(gradient.device, non_blocking=True))
