"""Models without values (on the device meta) get them block by block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from trueloop import ranks
from trueloop.errors import ConfigError

_RESETS = ("reset_parameters", "_reset_parameters")
"""The second is how torch's own attention and transformer layers call it."""


def is_on_meta(module: nn.Module) -> bool:
    """Whether any parameter or buffer of the module has no values yet."""
    return any(t.is_meta for t in (*module.parameters(), *module.buffers()))


def check_resettable(model: nn.Module) -> None:
    """Raise `ConfigError` for a module that has tensors on meta and cannot give them values."""
    for name, module in model.named_modules():
        own = [*module.parameters(recurse=False), *module.buffers(recurse=False)]
        if any(t.is_meta for t in own) and _reset(module) is None:
            raise ConfigError(
                f"the model is on the device meta, and {name or 'the model'!r} "
                f"({type(module).__name__}) has parameters and no reset_parameters() that gives "
                "them values: define it, or make the model on the CPU"
            )


def _reset(module: nn.Module) -> Callable[[], object] | None:
    return next((getattr(module, name) for name in _RESETS if hasattr(module, name)), None)


@contextmanager
def initialising(device: torch.device) -> Iterator[None]:
    """Within it, all ranks draw the random numbers that rank 0 draws, so that the values do not
    depend on the number of ranks. A rank whose generator was elsewhere gets its state back."""
    before = _generators(device)
    shared = ranks.from_main(before, "rank 0's random state")
    same = all(torch.equal(a, b) for a, b in zip(before, shared, strict=True))
    _set_generators(device, shared)
    try:
        yield
    finally:
        if not same:
            _set_generators(device, before)


def _generators(device: torch.device) -> list[Tensor]:
    states = [torch.get_rng_state()]
    return [*states, torch.cuda.get_rng_state(device)] if device.type == "cuda" else states


def _set_generators(device: torch.device, states: list[Tensor]) -> None:
    torch.set_rng_state(states[0])
    if device.type == "cuda":
        torch.cuda.set_rng_state(states[1], device)


class Materialiser:
    """Gives modules on meta their memory and their first values, one part of the model at a
    time."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._new: dict[int, tuple[nn.Parameter, nn.Parameter]] = {}
        """By the id of a parameter on meta: the one with values, so that tied ones stay tied; and
        itself, so that its id is not reused meanwhile."""
        self._done: set[int] = set()

    @torch.no_grad()
    def fill(self, root: nn.Module) -> None:
        """Fill all of `root` that has not been filled: each module's `reset_parameters()`, the
        children's before their parent's."""
        modules = list(_children_first(root, self._done))
        filled = {id(module): self._allocate(module) for module in modules}
        before = _versions(root)
        for module in modules:
            inner = any(filled.get(id(child), False) for child in module.children())
            is_container = inner and not list(module.parameters(recurse=False))
            reset = _reset(module)
            if reset is not None and (filled[id(module)] or is_container):
                reset()
                if _versions(root) != before:
                    raise ConfigError(
                        f"{type(module).__name__}.reset_parameters() changes parameters of blocks "
                        "that are sharded before it runs: let it fill only the module's own, and "
                        "give the modules inside the blocks their own reset_parameters()"
                    )
            filled[id(module)] |= inner

    def _allocate(self, module: nn.Module) -> bool:
        """Whether the module itself had tensors on meta."""
        found = False
        for name, parameter in list(module.named_parameters(recurse=False, remove_duplicate=False)):
            if parameter.is_meta:
                found = True
                if id(parameter) not in self._new:
                    data = torch.empty_like(parameter, device=self._device)
                    new = nn.Parameter(data, parameter.requires_grad)
                    self._new[id(parameter)] = new, parameter
                module.register_parameter(name, self._new[id(parameter)][0])
        for name, buffer in list(module.named_buffers(recurse=False)):
            if buffer.is_meta:
                found = True
                persistent = name not in module._non_persistent_buffers_set
                empty = torch.empty_like(buffer, device=self._device)
                module.register_buffer(name, empty, persistent)
        return found


def _versions(root: nn.Module) -> list[int]:
    """How often what is sharded already has been written to."""
    return [p._version for p in root.parameters() if hasattr(p, "placements")]


def _children_first(module: nn.Module, seen: set[int]) -> Iterable[nn.Module]:
    if id(module) not in seen:
        seen.add(id(module))
        for child in module.children():
            yield from _children_first(child, seen)
        yield module
