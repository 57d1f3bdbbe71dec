"""Containers of tensors in the program: found from its variables and modules downwards."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Collection, Iterator
from types import CodeType, FrameType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import torch

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.memory import footprint
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.probes.retained_graphs import let_go

_VISITS = 20_000
_PARTS = 100_000
_DEPTH = 6
_FEW = 64
"""Elements up to which the things in a container are looked into one by one."""
_SKIPPED = ("_parameters", "_buffers", "_modules")


class TensorOwner(NamedTuple):
    """A container of tensors or arrays, and how the program reaches it."""

    identity: int
    spelled: str
    names: set[tuple[str, bool]]
    """Of the variables and attributes that it is bound to; True: an attribute."""
    kind: str
    """`list`, `dict`, ..."""
    tensors: int
    """And arrays: how many."""
    memory: tuple[int, int]
    """Bytes of them: in main memory, and on a device."""


class Search:
    """One walk through what the frames on the stack and the program's modules can reach."""

    def __init__(self, frame: FrameType) -> None:
        self.codes: list[CodeType] = []
        """Of the program's frames, innermost first."""
        self.paths: set[str] = set()
        """Files of the program."""
        self.found: dict[int, TensorOwner] = {}
        self._seen: set[int] = set()
        self._left = _VISITS
        self._look(frame)

    def _look(self, frame: FrameType) -> None:
        for each in user_frames.frames_of_user(frame):
            self.codes.append(each.f_code)
            self.paths.add(each.f_code.co_filename)
            variables = each.f_locals
            self._names(variables)
            if each.f_globals is not variables:
                self._names(each.f_globals)
            let_go(each, variables)
        for module in list(sys.modules.values()):
            path = getattr(module, "__file__", None)
            if (
                isinstance(path, str)
                and path.endswith(".py")
                and user_frames.kind_of(path) == "user"
            ):
                self.paths.add(path)
                self._names(vars(module))

    def _names(self, variables: Any) -> None:
        for name, value in list(variables.items()):
            if not name.startswith("__"):
                self._visit(value, name, name, False, _DEPTH)

    def _visit(
        self, value: object, name: str, spelled: str, is_attribute: bool, depth: int
    ) -> None:
        known = self.found.get(id(value))
        if known is not None:
            known.names.add((name, is_attribute))
        self._left -= 1
        plain = isinstance(value, (str, bytes, int, float, torch.Tensor, ModuleType))
        if self._left < 0 or depth == 0 or plain or id(value) in self._seen:
            return
        self._seen.add(id(value))
        if isinstance(value, (list, dict, set, deque, tuple)):
            self._container(value, name, spelled, is_attribute, depth)
            return
        for below, each in self._parts(value):
            inner = not isinstance(value, (FunctionType, MethodType))
            path = f"{spelled}.{below}" if inner else below
            self._visit(each, below, path, inner, depth - 1)

    def _container(
        self, value: Collection[Any], name: str, spelled: str, is_attribute: bool, depth: int
    ) -> None:
        if not isinstance(value, tuple) and getattr(value, "maxlen", None) is None:
            count, memory = measured(value)
            if count:
                kind = type(value).__name__
                self.found[id(value)] = TensorOwner(
                    id(value), spelled, {(name, is_attribute)}, kind, count, memory
                )
        if len(value) <= _FEW:
            for each in list(value.values() if isinstance(value, dict) else value):
                if not isinstance(each, (list, dict, set, deque)):
                    self._visit(each, name, spelled, is_attribute, depth - 1)

    def _parts(self, value: object) -> Iterator[tuple[str, Any]]:
        """The contents of an object, with names."""
        if isinstance(value, MethodType):
            yield type(value.__self__).__name__.lower(), value.__self__
        elif isinstance(value, FunctionType):
            if user_frames.kind_of(value.__code__.co_filename) == "user":
                yield from _closed_over(value)
        elif isinstance(value, type):
            if _is_users(value):
                yield from _containers(value)
        elif hasattr(value, "__dict__") and (
            isinstance(value, torch.nn.Module) or _is_users(type(value))
        ):
            for name, each in list(vars(value).items()):
                if name not in _SKIPPED:
                    yield name, each
            if isinstance(value, torch.nn.Module):
                yield from list(value._modules.items())
            if _is_users(type(value)):
                yield from _containers(type(value))


def _closed_over(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """The values that a function of the program keeps: variables around it, and defaults."""
    yield from inspection.closed_over(function)
    defaults = function.__defaults__ or ()
    names = function.__code__.co_varnames[: function.__code__.co_argcount]
    yield from zip(names[len(names) - len(defaults) :], defaults, strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    yield from list(vars(function).items())


def _containers(kind: type) -> Iterator[tuple[str, Any]]:
    """The values that a class shares among its objects."""
    for name, each in list(vars(kind).items()):
        if not name.startswith("__") and isinstance(each, (list, dict, set, deque)):
            yield name, each


def _is_users(kind: type) -> bool:
    module = sys.modules.get(kind.__module__)
    path = getattr(module, "__file__", None)
    if module is None or kind.__module__ == "__main__":
        return True
    return isinstance(path, str) and user_frames.kind_of(path) == "user"


def measured(container: Any) -> tuple[int, tuple[int, int]]:
    """How many tensors and arrays a container has, and their bytes in main memory and on a device;
    of a very large one, estimated from its first parts."""
    main: dict[int, int] = {}
    device: dict[int, int] = {}
    count = visited = 0
    waiting: list[Any] = [container]
    seen: set[int] = set()
    while waiting and visited < _PARTS:
        value = waiting.pop()
        visited += 1
        if isinstance(value, torch.Tensor):
            identity, size = footprint.storage_of(value)
            (main if value.device.type == "cpu" else device)[identity] = size
            count += 1
        elif type(value).__module__ == "numpy" and hasattr(value, "nbytes"):
            base = value if value.base is None else value.base
            main[id(base)] = int(getattr(base, "nbytes", value.nbytes))
            count += 1
        elif id(value) not in seen:
            seen.add(id(value))
            if isinstance(value, dict):
                waiting += list(value.values())
            elif isinstance(value, (list, tuple, set, deque)):
                waiting += list(value)
            elif hasattr(value, "__dict__") and not callable(value) and _is_users(type(value)):
                waiting += list(vars(value).values())
    return count, (sum(main.values()), sum(device.values()))
