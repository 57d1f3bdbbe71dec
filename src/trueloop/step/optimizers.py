"""Optimizers with the right parameter groups, fused where an implementation exists.

Weight decay acts on matrices and kernels only; biases, and the gains of normalisation layers, keep
their scale. The model's own order of parameters is kept within each group.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from torch import nn
from torch.optim import SGD, Adam, AdamW, Optimizer

from trueloop.errors import ConfigError, nearest

Parameters = nn.Module | Iterable[nn.Parameter]
_O = TypeVar("_O", SGD, Adam, AdamW)

_NORMS: tuple[type[nn.Module], ...] = (
    nn.modules.batchnorm._NormBase,
    nn.LayerNorm,
    nn.GroupNorm,
    nn.LocalResponseNorm,
    nn.RMSNorm,
)


def adamw(
    model: Parameters,
    lr: float = 1e-3,
    *,
    weight_decay: float = 0.01,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> AdamW:
    """AdamW (Loshchilov and Hutter, 2019): decay apart from the gradient."""
    return _build(AdamW, model, lr, weight_decay, betas=betas, eps=eps)


def adam(
    model: Parameters,
    lr: float = 1e-3,
    *,
    weight_decay: float = 0.0,
    betas: tuple[float, float] = (0.9, 0.999),
    eps: float = 1e-8,
) -> Adam:
    """Adam (Kingma and Ba, 2015); its `weight_decay` is an L2 term in the gradient."""
    return _build(Adam, model, lr, weight_decay, betas=betas, eps=eps)


def sgd(
    model: Parameters,
    lr: float = 0.1,
    *,
    weight_decay: float = 0.0,
    momentum: float = 0.9,
    nesterov: bool = True,
) -> SGD:
    """Stochastic gradient descent with (Nesterov) momentum."""
    nesterov = nesterov and momentum > 0
    return _build(SGD, model, lr, weight_decay, momentum=momentum, nesterov=nesterov)


_BY_NAME: dict[str, Callable[..., Optimizer]] = {"adamw": adamw, "adam": adam, "sgd": sgd}


def by_name(name: str, model: Parameters, lr: float, *, weight_decay: float) -> Optimizer:
    """`adamw`, `adam` or `sgd` with its defaults; `ConfigError` for any other name."""
    if name not in _BY_NAME:
        raise ConfigError(f"unknown optimizer {name!r}: {nearest(name, _BY_NAME)}")
    return _BY_NAME[name](model, lr, weight_decay=weight_decay)


def parameter_groups(model: Parameters, weight_decay: float) -> list[dict[str, Any]]:
    """Trainable parameters in two groups, decayed and not; in one if nothing decays.

    An iterable of bare parameters has no layers to look at: those of fewer than two dimensions are
    left undecayed.
    """
    if isinstance(model, nn.Module):
        of_norms = {
            id(p) for m in model.modules() if isinstance(m, _NORMS) for p in m.parameters(False)
        }
        trainable = [p for p in model.parameters() if p.requires_grad]
    else:
        of_norms = set()
        trainable = [p for p in model if p.requires_grad]
    if not trainable:
        raise ConfigError("the model has no trainable parameter: set requires_grad=True on some")
    if weight_decay == 0:
        return [{"params": trainable, "weight_decay": 0.0}]
    decayed = [p for p in trainable if p.ndim >= 2 and id(p) not in of_norms]
    kept = [p for p in trainable if p.ndim < 2 or id(p) in of_norms]
    groups = [
        {"params": decayed, "weight_decay": weight_decay},
        {"params": kept, "weight_decay": 0.0},
    ]
    return [group for group in groups if group["params"]]


def _build(kind: type[_O], model: Parameters, lr: float, weight_decay: float, **options: Any) -> _O:
    if not (isinstance(lr, (int, float)) and math.isfinite(lr) and lr > 0):
        raise ConfigError(f"lr={lr!r} cannot train: write a number above 0, such as 1e-3")
    if not (
        isinstance(weight_decay, (int, float)) and math.isfinite(weight_decay) and weight_decay >= 0
    ):
        raise ConfigError(f"weight_decay={weight_decay!r}: write 0 or a number above it")
    groups = parameter_groups(model, weight_decay)
    # Torch accepts complex parameters and sparse gradients here, and fails at the first step.
    sparse = isinstance(model, nn.Module) and any(
        isinstance(m, (nn.Embedding, nn.EmbeddingBag)) and m.sparse for m in model.modules()
    )
    if not sparse and all(p.is_floating_point() for group in groups for p in group["params"]):
        try:
            return kind(groups, lr=lr, fused=True, **options)
        except RuntimeError:
            pass  # no fused implementation for this device: torch's own choice
    return kind(groups, lr=lr, **options)
