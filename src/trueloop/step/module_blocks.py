"""Which modules of a model are sharded one by one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from trueloop import _options
from trueloop.errors import ConfigError, nearest
from trueloop.hidden_matrices import repeated_modules


def check_blocks(names: Any) -> None:
    """A sequence of names of classes, or None; `ConfigError` if not."""
    if names is None:
        return
    if isinstance(names, str) or not all(isinstance(name, str) for name in _sequence(names)):
        raise ConfigError(
            f"blocks={_options.shown(names)} is not a list of names of classes: write "
            "FSDPOptions(blocks=['Block'])"
        )


def _sequence(names: Any) -> Sequence[Any]:
    return names if isinstance(names, (list, tuple)) else (None,)


def blocks_of(model: nn.Module, names: Sequence[str] | None) -> list[nn.Module]:
    """The outermost modules of the named classes, or the repeated layers, in the model's order.

    Raises `ConfigError` for a name that no module has.
    """
    if names is None:
        wanted = {id(module) for module in repeated_modules(model)}
    else:
        _check_known(model, names)
        wanted = {id(m) for m in model.modules() if type(m).__name__ in names}
    return _outermost(model, wanted)


def _check_known(model: nn.Module, names: Sequence[str]) -> None:
    known = sorted({type(module).__name__ for module in model.modules()})
    for name in names:
        if name not in known:
            raise ConfigError(
                f"blocks names {name!r}, and no module of the model is of that class: "
                + nearest(name, known)
            )


def _outermost(module: nn.Module, wanted: set[int]) -> list[nn.Module]:
    found: dict[int, nn.Module] = {}
    for child in module.children():
        # A container has no forward, at which it could get its parameters.
        if id(child) in wanted and not isinstance(child, (nn.ModuleList, nn.ModuleDict)):
            found[id(child)] = child
        else:
            found |= {id(inner): inner for inner in _outermost(child, wanted)}
    return list(found.values())


def check_owners(model: nn.Module, blocks: Sequence[nn.Module]) -> None:
    """Raise `ConfigError` for what `fully_shard` cannot take."""
    inside = {id(module): number for number, b in enumerate(blocks) for module in b.modules()}
    owners: dict[int, int | None] = {}
    for path, module in model.named_modules():
        for name, parameter in module.named_parameters(path, recurse=False):
            if parameter.ndim == 0:
                raise ConfigError(
                    f"the parameter {name!r} is a scalar, which fsdp cannot shard: give it the "
                    "shape (1,)"
                )
            owner = inside.get(id(module))
            if owners.setdefault(id(parameter), owner) != owner:
                raise ConfigError(
                    f"the parameter {name!r} is shared by two blocks, which fsdp gathers at "
                    "different times: name blocks that contain all of its uses, or none, in "
                    "FSDPOptions(blocks=[...])"
                )
        if getattr(module, "sparse", False) and isinstance(module, (nn.Embedding, nn.EmbeddingBag)):
            raise ConfigError(
                f"the embedding {path!r} has sparse gradients, which fsdp cannot shard: make it "
                "with sparse=False, or write parallel='ddp'"
            )
