"""Measurements on parameters."""

from __future__ import annotations

import math
import weakref
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.manual_edits import gradient_state

if TYPE_CHECKING:
    from torch import nn
    from torch.optim import Optimizer

    from trueloop.doctor.live.context import Context

_SMALL = 16_384


def rates(optimizer: Optimizer) -> list[float]:
    """The learning rates of an optimizer's groups, as far as they are numbers."""
    found = (inspection.number(group.get("lr")) for group in optimizer.param_groups)
    return [each for each in found if each is not None]


def small_of(optimizer: Optimizer) -> Any:
    """A small parameter near the beginning of an optimizer's: its gradient behaves like the
    others'."""
    for each in inspection.parameters_of(optimizer):
        exact = each.dtype in (torch.float32, torch.float64)
        if each.requires_grad and each.dim() == 1 and exact and 1 < each.numel() <= _SMALL:
            return weakref.ref(each)
    return _nothing


def _nothing() -> None:
    return None


def owners(watcher: Context, parameter: torch.Tensor) -> list[Any]:
    """The modules that have a parameter now."""
    alive = (found() for found in watcher.things.owners.get(parameter) or ())
    return [
        each
        for each in alive
        if each is not None and any(p is parameter for p in each._parameters.values())
    ]


def changed(before: Iterable[tuple[Any, object]]) -> Iterator[torch.Tensor]:
    """Of parameters (weak) and their `gradient_state`: those whose gradient has arrived since."""
    for reference, state in before:
        parameter = reference()
        if parameter is not None and gradient_state(parameter) not in (None, state):
            yield parameter


def local(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor on this rank: reading it must not wait for other ranks."""
    plain = tensor.detach()
    if hasattr(plain, "to_local"):
        plain = plain.to_local()
    if plain.is_sparse:
        plain = plain.coalesce().values()
    return plain


def sums(tensor: torch.Tensor) -> tuple[float, ...]:
    """Changes whenever the values do."""
    plain = local(tensor)
    exact = torch.float32 if plain.device.type == "mps" else torch.float64
    total = plain.sum(dtype=exact)
    size = torch.linalg.vector_norm(plain, dtype=exact)
    return tuple(torch.stack((total, size)).tolist())


def norm(tensor: torch.Tensor) -> float:
    return 0.0 if tensor is None else float(torch.linalg.vector_norm(local(tensor)))


def total(tensors: list[Any]) -> float:
    """Norm of all numbers of some tensors together."""
    plain = [local(each) for each in tensors]
    plain = [each for each in plain if each.is_floating_point() and each.numel()]
    if not plain:
        return 0.0
    sizes = torch._foreach_norm(plain)
    return float(torch.linalg.vector_norm(torch.stack([s.to(sizes[0]) for s in sizes])))


def capturing() -> bool:
    """A CUDA graph is being recorded: nothing may wait for the device."""
    return torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()


def name_of(root: nn.Module, parameter: torch.Tensor) -> str:
    """`head.weight`."""
    found = (name for name, each in root.named_parameters() if each is parameter)
    return next(found, "")


def looks_fresh(module: nn.Module) -> bool:
    """Its own parameters look as a constructor leaves them: constants, or evenly spread, or of a
    standard deviation of one; what training leaves has tails."""
    seen = [_is_fresh(local(each)) for each in module._parameters.values() if each is not None]
    known = [each for each in seen if each is not None]
    return not known or sum(known) * 2 >= len(known)


def _is_fresh(values: torch.Tensor) -> bool | None:
    flat = values.reshape(-1)[:65_536].double()
    if len(flat) < 2:
        return None
    if bool((flat == flat[0]).all()):
        return True
    if len(flat) < 48:
        return None
    spread = float(flat.std())
    reach = float((flat - flat.mean()).abs().max())
    # The spread of a few numbers is off by chance, by up to three standard errors.
    about_one = abs(spread - 1) < max(0.1, 3 / math.sqrt(2 * len(flat)))
    return reach < 1.95 * spread or about_one


def is_users(watcher: Context, module: nn.Module) -> bool:
    """The class that composes a layer is the program's own, and no library's."""
    seen: set[int] = set()
    while id(module) not in seen:
        seen.add(id(module))
        kind = type(module)
        if not kind.__module__.startswith("torch."):
            forward = getattr(kind.forward, "__code__", None)
            return forward is None or user_frames.kind_of(forward.co_filename) == "user"
        parents = [found() for found in watcher.things.parents.get(module) or ()]
        module = next((each for each in parents if each is not None), module)
    return True
