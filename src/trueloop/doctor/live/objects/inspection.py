"""The kind and the content of a program's value, read without running its code.

A proxy, a mock, a lazy or a recording object answers whatever it is asked, and what it does then is
seen by the program: it lands in a trace, counts as a call, loads a file, raises. So a value is
asked only for its types and its stored content: no attribute that a class computes, no method that
a class of the program's defines.
"""

from __future__ import annotations

import builtins
import dis
import inspect
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from types import FunctionType, MemberDescriptorType
from typing import TYPE_CHECKING, Any, SupportsFloat, TypeGuard, TypeVar, overload

import torch
from torch import nn
from torch.utils import data

if TYPE_CHECKING:
    from torch.optim import Optimizer
    from torch.utils.data import DataLoader
    from typing_extensions import TypeIs

Kind = TypeVar("Kind")
Second = TypeVar("Second")
_MANY = 64
"""Entries of a container that are looked at."""
_PLAIN_TENSORS = (torch.Tensor, nn.Parameter)
_LAZY: Any = (nn.parameter.UninitializedParameter, nn.parameter.UninitializedBuffer)


@overload
def is_a(value: object, kinds: type[Kind]) -> TypeIs[Kind]: ...
@overload
def is_a(value: object, kinds: tuple[type[Kind], type[Second]]) -> TypeIs[Kind | Second]: ...
@overload
def is_a(value: object, kinds: tuple[type, ...]) -> bool: ...
def is_a(value: object, kinds: type | tuple[type, ...]) -> bool:
    """`isinstance` that does not ask for `__class__`, which an object may compute."""
    return issubclass(type(value), kinds)


def held(value: object, name: str, default: Any = None) -> Any:
    """An attribute that an object or its class stores; `default` for one that would be computed."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        own = {}
    if name in own:
        return own[name]
    for kind in type(value).__mro__:
        if name in vars(kind):
            found = vars(kind)[name]
            if type(found) is MemberDescriptorType:
                try:
                    return found.__get__(value)
                except AttributeError:  # a slot that is empty
                    return default
            return default if hasattr(type(found), "__get__") else found
    return default


_TRANSFORMERS = (
    nn.Transformer,
    nn.TransformerEncoder,
    nn.TransformerDecoder,
    nn.TransformerEncoderLayer,
    nn.TransformerDecoderLayer,
)


def dropout_of(module: nn.Module) -> float | None:
    """The rate of a dropout layer, and the highest one inside a transformer of torch; None for a
    different module."""
    if not is_a(module, _TRANSFORMERS):
        share = held(module, "p")
        return float(share) if type(share) in (int, float) else None
    rates = [
        held(each, "dropout" if is_a(each, nn.MultiheadAttention) else "p")
        for each in module.modules()
    ]
    return max((float(each) for each in rates if type(each) in (int, float)), default=0.0)


def attributes(value: object) -> dict[str, Any]:
    """All that an object stores by name."""
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return {}
    return own if type(own) is dict else {}


def entries(value: object) -> list[Any]:
    """The content of a sequence, a dict or a data class; nothing of anything else."""
    if is_a(value, tuple):
        return list(tuple.__getitem__(value, slice(_MANY)))
    if is_a(value, list):
        return list.__getitem__(value, slice(_MANY))
    if is_a(value, dict):
        return list(islice(dict.values(value), _MANY))
    fields = _fields(type(value))
    return [held(value, name) for name in fields] if fields else []


def items(value: dict[Any, Any]) -> list[tuple[Any, Any]]:
    """The first keys and values of a dict."""
    return list(islice(dict.items(value), _MANY))


def _fields(kind: type) -> Any:
    for base in kind.__mro__:
        if "__dataclass_fields__" in vars(base):
            return vars(base)["__dataclass_fields__"]
    return ()


# ---------------------------------------------------------------------- tensors


def is_tensor(value: object) -> TypeGuard[torch.Tensor]:
    """A tensor that can be read without running code of the program's: one of a class that takes
    its operations itself (`__torch_dispatch__`) is not read, unless the class is torch's."""
    kind = type(value)
    return kind in _PLAIN_TENSORS or (issubclass(kind, torch.Tensor) and _is_readable(kind))


def _is_readable(kind: type[Any]) -> bool:
    for base in kind.__mro__:
        if "__torch_dispatch__" in vars(base):
            return base is torch.Tensor or base.__module__.startswith("torch.")
    return True


def parameters_of(optimizer: Optimizer) -> list[Any]:
    """The parameters that an optimizer holds and that can be read. Asked often: of those of torch's
    own classes, which are nearly all, no function is."""
    return [
        each
        for group in optimizer.param_groups
        for each in group["params"]
        if (type(each) in _PLAIN_TENSORS or (is_tensor(each) and not is_lazy(each)))
        and (
            (gradient := each.grad) is None or type(gradient) is torch.Tensor or is_tensor(gradient)
        )
    ]


def weights(module: nn.Module) -> Iterator[nn.Parameter]:
    """The parameters that are registered in a module, whatever its class makes of `parameters()`:
    a list, or a method that needs arguments."""
    return nn.Module.parameters(module)


def learning_layers(module: nn.Module) -> int:
    """How many modules in it have weights of their own that need gradients: 0; 1 for one linear
    layer; 2 for anything more."""
    learning = (
        each for each in nn.Module.modules(module) if any(map(_learns, each._parameters.values()))
    )
    first = list(islice(learning, 2))
    return len(first) if not first or type(first[0]) is nn.Linear else 2


def _learns(parameter: nn.Parameter | None) -> bool:
    return parameter is not None and parameter.requires_grad


def is_lazy(parameter: object) -> bool:
    """Its layer has not been called yet: it has no shape."""
    return issubclass(type(parameter), _LAZY)


def number(value: object) -> float | None:
    """The number that something is, if no code of the program is needed to read it."""
    if type(value) is float or type(value) is int or type(value) is bool:
        return float(value)
    if is_tensor(value) and value.numel() == 1 and not value.is_meta:
        return float(value)
    return float(value) if type(value).__module__ == "numpy" and _is_scalar(value) else None


def _is_scalar(value: object) -> TypeGuard[SupportsFloat]:
    import numpy as np

    return issubclass(type(value), (np.integer, np.floating))


# ---------------------------------------------------------------------- lengths


def length(value: Any) -> int | None:
    """`len(value)`, or None where that could be noticed.

    The length of a loader over a stream is one of these: a loader that was asked for it warns when
    the stream gives more.
    """
    kind = type(value)
    if issubclass(kind, data.DataLoader):
        return _batches(value)
    if kind is data.TensorDataset:
        return len(value.tensors[0]) if value.tensors and is_tensor(value.tensors[0]) else None
    if kind in (data.Subset, data.SubsetRandomSampler):
        return length(value.indices)
    if kind is data.ConcatDataset:
        return int(value.cumulative_sizes[-1])
    if kind is data.RandomSampler and type(held(value, "_num_samples")) is int:
        return int(value._num_samples)
    if kind in (data.SequentialSampler, data.RandomSampler):
        return length(value.data_source)
    if kind in (data.WeightedRandomSampler, data.DistributedSampler):
        return int(value.num_samples)
    method = next((vars(base)["__len__"] for base in kind.__mro__ if "__len__" in vars(base)), None)
    if method is None or (type(method) is FunctionType and not _only_reads(method)):
        return None
    try:
        return len(value)
    except (TypeError, NotImplementedError):
        return None


def _batches(loader: DataLoader[Any]) -> int | None:
    dataset, sampler = held(loader, "dataset"), held(loader, "batch_sampler")
    if (
        issubclass(type(dataset), data.IterableDataset)
        or type(loader).__len__ is not data.DataLoader.__len__
    ):
        return None
    if sampler is None:
        return length(held(loader, "sampler"))
    if type(sampler) is not data.BatchSampler:
        return length(sampler)
    count, size = length(sampler.sampler), sampler.batch_size
    if count is None:
        return None
    return count // size if sampler.drop_last else -(-count // size)


_ASKS = frozenset("len int min max sum abs round".split())
_READS = frozenset(
    "RESUME COPY_FREE_VARS PUSH_NULL PRECALL CALL CALL_FUNCTION CACHE NOP COPY SWAP KW_NAMES"
    " BINARY_OP BINARY_SUBSCR BINARY_SLICE BUILD_SLICE COMPARE_OP CONTAINS_OP IS_OP UNARY_NEGATIVE"
    " UNARY_NOT STORE_FAST POP_TOP JUMP_FORWARD EXTENDED_ARG TO_BOOL".split()
)
_BEGINNINGS = ("LOAD_", "RETURN_", "POP_JUMP")
_METHODS = frozenset("size __len__".split())


def _only_reads(function: FunctionType) -> bool:
    """A function reads the content of its object and calls no function of the program's by name."""
    return all(_is_reading(each, function) for each in dis.get_instructions(function))


def _is_reading(instruction: dis.Instruction, function: FunctionType) -> bool:
    name = instruction.opname
    if name == "LOAD_GLOBAL":
        given = str(instruction.argval)
        return (
            given in _ASKS
            and function.__globals__.get(given, vars(builtins)[given]) is (vars(builtins)[given])
        )
    if name == "LOAD_METHOD" or (name == "LOAD_ATTR" and instruction.argrepr.endswith("NULL|self")):
        return instruction.argval in _METHODS
    return name in _READS or name.startswith(_BEGINNINGS)


def orders_by_epoch(kind: type) -> bool:
    """A class of the user's derived from `DistributedSampler`, which reads its epoch when it is
    gone through, and leaves setting it to others."""
    base = data.DistributedSampler
    if not issubclass(kind, base) or kind is base:
        return False
    if inspect.getattr_static(kind, "set_epoch") is not vars(base)["set_epoch"]:
        return False
    code = getattr(inspect.getattr_static(kind, "__iter__"), "__code__", None)
    if code is None or {"epoch", "__iter__"}.isdisjoint(code.co_names):
        return False
    steps = dis.get_instructions(code)
    return not any(each.opname == "STORE_ATTR" and each.argval == "epoch" for each in steps)


def closed_over(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The variables around a function that it uses, by name, without those that are not bound."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        with suppress(ValueError):
            yield name, cell.cell_contents
