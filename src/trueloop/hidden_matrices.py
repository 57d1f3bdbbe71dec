"""The repeated part of a model, and its hidden matrices: those between its embeddings and its
output layer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from torch import nn

from trueloop import _options
from trueloop.errors import ConfigError, nearest

_CONTAINERS = (nn.ModuleList, nn.ModuleDict, nn.Sequential)
_PRODUCTS = (nn.Linear, nn.MultiheadAttention, nn.RNNBase, nn.RNNCellBase)
"""Layers whose matrices are multiplied with what flows through the model."""
_EMBEDDINGS = (nn.Embedding, nn.EmbeddingBag)


def repeated_modules(model: nn.Module) -> list[nn.Module]:
    """Modules with a matrix or a kernel that have a sibling of their class in a container."""
    found: dict[int, nn.Module] = {}
    for container in model.modules():
        if isinstance(container, _CONTAINERS):
            children = list(container.children())
            kinds = Counter(type(child) for child in children)
            found |= {
                id(child): child
                for child in children
                if kinds[type(child)] > 1 and any(p.ndim > 1 for p in child.parameters())
            }
    return list(found.values())


def hidden_matrices(model: nn.Module, but: Sequence[str] | None = None) -> list[nn.Parameter]:
    """The trainable two-dimensional parameters of linear, attention and recurrent layers, in the
    model's order, without those of embeddings (also where they are tied) and of the head.

    `but` names the modules that are the head; None: the last `nn.Linear` that the model has outside
    of repeated blocks, since an output layer is not repeated. Raises `ConfigError` for a name that
    the model does not have.
    """
    heads = _last_linear(model) if but is None else _named(model, but)
    apart = {id(p) for m in model.modules() if isinstance(m, _EMBEDDINGS) for p in m.parameters()}
    apart |= {id(p) for head in heads for p in head.parameters()}
    inside = {
        id(p) for m in model.modules() if isinstance(m, _PRODUCTS) for p in m.parameters(False)
    }
    return [
        p
        for p in model.parameters()
        if id(p) in inside
        and id(p) not in apart
        and p.ndim == 2
        and p.requires_grad
        and p.is_floating_point()
    ]


def _last_linear(model: nn.Module) -> Sequence[nn.Module]:
    """The last linear layer outside of repeated blocks; a repeated layer itself is not a block."""
    blocks = [m for m in repeated_modules(model) if not isinstance(m, nn.Linear)]
    inside = {id(module) for block in blocks for module in block.modules()}
    outside = [m for m in model.modules() if id(m) not in inside]
    return [m for m in outside if isinstance(m, nn.Linear)][-1:]


def _named(model: nn.Module, names: Any) -> Sequence[nn.Module]:
    is_list = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
    if not is_list:
        raise ConfigError(
            f"adamw_modules={_options.shown(names)} is not a list of names of modules: write "
            "adamw_modules=('head',)"
        )
    known = {name: module for name, module in model.named_modules() if name}
    for name in names:
        if name not in known:
            raise ConfigError(
                f"adamw_modules names {name!r}, and the model has no such module: "
                + nearest(name, list(known))
            )
    return [known[name] for name in names]
