"""The repeated part of a model: its hidden matrices, which are those between its embeddings and its
output layer, and the depth of each parameter."""

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


def layer_scales(
    model: nn.Module, decay: float, layers: Sequence[str] | None = None
) -> dict[int, tuple[int, float]]:
    """For each parameter, by its id: the number of its layer, from 0 at the input, and the factor
    of its learning rate, decay ** (last layer - layer).

    Without `layers`, all before the first repeated block is layer 0, each block is a layer, and all
    after the last block is the last layer; a model without blocks has a layer for each module that
    holds parameters itself, in the order of registration. `layers` names modules from input to
    output. A tied parameter belongs to its first layer. Raises `ConfigError` for a name that the
    model does not have, and for parameters outside of the named layers.
    """
    numbers = _layers_by_names(model, layers) if layers is not None else _layers_by_blocks(model)
    present = sorted(set(numbers.values()))
    order = {number: k for k, number in enumerate(present)}
    last = len(present) - 1
    return {key: (order[n], decay ** (last - order[n])) for key, n in numbers.items()}


def _layers_by_blocks(model: nn.Module) -> dict[int, int]:
    blocks = _outermost(model, {id(block) for block in repeated_modules(model)})
    found: dict[int, int] = {}
    if len(blocks) < 2:
        for number, module in enumerate(model.modules()):
            for parameter in module.parameters(recurse=False):
                found.setdefault(id(parameter), number)
        return found
    inside = {id(p): n for n, block in enumerate(blocks, start=1) for p in block.parameters()}
    number = 0
    for parameter in model.parameters():
        if id(parameter) in inside:
            number = inside[id(parameter)]
            found[id(parameter)] = number
        else:  # between two blocks it belongs to the first of them
            found[id(parameter)] = len(blocks) + 1 if number == len(blocks) else number
    return found


def _outermost(module: nn.Module, wanted: set[int]) -> list[nn.Module]:
    found: list[nn.Module] = []
    for child in module.children():
        found += [child] if id(child) in wanted else _outermost(child, wanted)
    return found


def _layers_by_names(model: nn.Module, layers: Any) -> dict[int, int]:
    is_list = isinstance(layers, (list, tuple)) and all(isinstance(name, str) for name in layers)
    if not is_list or not layers:
        raise ConfigError(
            f"layers={_options.shown(layers)} is not a list of names of modules: write them from "
            "input to output, e.g. layers=['embedding', 'encoder', 'head']"
        )
    known = dict(model.named_modules())
    found: dict[int, int] = {}
    for number, name in enumerate(layers):
        if name not in known or not name:
            raise ConfigError(
                f"layers names {name!r}, and the model has no such module: "
                + nearest(name, [each for each in known if each])
            )
        for parameter in known[name].parameters():
            found.setdefault(id(parameter), number)
    outside = [name for name, p in model.named_parameters() if id(p) not in found]
    if outside:
        raise ConfigError(
            f"layers has no module that contains the parameter {outside[0]!r}"
            + (f" ({len(outside)} in all)" if len(outside) > 1 else "")
            + ": name each module with parameters, from input to output"
        )
    return found
