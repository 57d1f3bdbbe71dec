"""The random draws of a loader's workers, and their seeds: read from the source of the objects that
they are given, without running any of it."""

from __future__ import annotations

import ast
import functools
import random
import re
import sys
from types import (
    BuiltinFunctionType,
    BuiltinMethodType,
    FunctionType,
    MethodType,
    ModuleType,
)
from typing import TYPE_CHECKING, Any

import torch
from torch import nn
from torch.utils.data import ConcatDataset, Dataset, Subset

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.frames.live_expressions import (
    UNKNOWN,
    FunctionNames,
    has_plain_truth,
    value_of,
)
from trueloop.doctor.live.frames.user_frames import kind_of
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.probes import class_source
from trueloop.doctor.model import randomness
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.randomness import CHANGES, Draw, WorkerSeed
from trueloop.doctor.model.things import Loader

if TYPE_CHECKING:
    from torch.utils.data import DataLoader

_DEPTH = 6
_MOST = 64
"""Names of transforms."""
_BOUND = (MethodType, BuiltinMethodType)
_NAMED = (FunctionType, BuiltinFunctionType, MethodType, type)
_PLAIN_CALLS = re.compile(
    r"(np|numpy)\.random\.seed|random\.seed|torch\.(random\.)?manual_seed|int|abs|str|print"
    r"|torch\.cuda\.manual_seed(_all)?"
)


def look_at(loader: DataLoader[Any], thing: Loader) -> None:
    """Note on a loader's thing, and on its data set's, what rules ask about workers."""
    function = inspection.held(loader, "worker_init_fn")
    thing.persistent = inspection.held(loader, "persistent_workers") is True
    thing.reseeds = False if function is None else _touches_dataset(function)
    thing.worker_seeds = [] if function is None else _seeds_of(function)
    if thing.dataset is not None and thing.dataset.draws is None:
        thing.dataset.draws = draws_of(loader.dataset)


def draws_of(dataset: object) -> list[Draw]:
    """The random draws of reading a sample of a data set."""
    reader = _Reader(_transforms_of(dataset))
    reader.read_dataset(dataset)
    flag = next((name for name, value in _flags(dataset) if value is True), "")
    return [draw._replace(name=draw.name or flag) for draw in reader.draws()]


def _flags(dataset: object) -> list[tuple[str, Any]]:
    found: list[tuple[str, Any]] = []
    for _ in range(_DEPTH):
        own = inspection.attributes(dataset)
        found += [(name, value) for name, value in own.items() if randomness.AUGMENTS.search(name)]
        dataset = own.get("dataset")
        if dataset is None:
            break
    return found


def _transforms_of(dataset: object) -> set[str]:
    """The names of the functions and classes that a data set holds as its transforms."""
    waiting: list[tuple[Any, int]] = []
    for _ in range(_DEPTH):
        own = inspection.attributes(dataset)
        waiting += [(held, 0) for name, held in own.items() if randomness.holds_transform(name)]
        dataset = own.get("dataset")
    found: set[str] = set()
    while waiting and len(found) < _MOST:
        value, depth = waiting.pop()
        if inspection.is_a(value, MethodType):
            value = value.__func__
        if inspection.is_a(value, FunctionType):
            found.add(value.__name__)
        elif inspection.is_a(value, (list, tuple)):
            waiting += [(each, depth) for each in inspection.entries(value)]
        elif depth < _DEPTH and not inspection.is_a(value, (type, ModuleType, torch.Tensor)):
            found.add(type(value).__name__)
            held = inspection.attributes(value).values()
            waiting += [(each, depth + 1) for each in held]
    return found


class _Reader:
    """Goes through the functions that read a sample."""

    def __init__(self, transforms: set[str]) -> None:
        self._transforms = transforms
        self._drawn: list[tuple[int | None, Draw]] = []
        """Each with the `id` of the user's own generator that it is from."""
        self._made: dict[int, Location | None] = {}
        self._reseeded: set[int] = set()
        self._seen: set[tuple[Any, int]] = set()

    def draws(self) -> list[Draw]:
        return [draw for generator, draw in self._drawn if generator not in self._reseeded]

    def _augmenting(self, inside: tuple[str, ...]) -> str:
        return randomness.augmenting(inside, self._transforms)

    def read_dataset(self, dataset: object, depth: int = 0) -> None:
        if depth > _DEPTH:
            return
        if inspection.is_a(dataset, Subset):
            self.read_dataset(dataset.dataset, depth + 1)
        elif inspection.is_a(dataset, ConcatDataset):
            for each in dataset.datasets:
                self.read_dataset(each, depth + 1)
        else:
            kind = type(dataset)
            method = getattr(kind, "__getitem__", None) or getattr(kind, "__iter__", None)
            if isinstance(method, FunctionType) and _is_users(method):
                self.read(method, dataset, (), depth)
                return
            for name in ("transform", "transforms", "target_transform"):
                self.apply(inspection.attributes(dataset).get(name), None, (), depth)

    def apply(
        self, called: Any, place: Location | None, inside: tuple[str, ...], depth: int
    ) -> None:
        """Something is called on a sample."""
        if depth > _DEPTH or called is None or called is UNKNOWN:
            return
        if inspection.is_a(called, functools.partial):
            self.apply(called.func, place, inside, depth)
        elif inspection.is_a(called, MethodType):
            if isinstance(called.__func__, FunctionType):
                self.read(called.__func__, called.__self__, inside, depth)
        elif inspection.is_a(called, FunctionType):
            self.read(called, None, inside, depth)
        elif inspection.is_a(called, (list, tuple)):
            for each in inspection.entries(called):
                self.apply(each, place, inside, depth)
        elif not inspection.is_a(called, (type, ModuleType)):
            self._apply_object(called, place, inside, depth)

    def _apply_object(
        self, called: Any, place: Location | None, inside: tuple[str, ...], depth: int
    ) -> None:
        kind = type(called)
        name = "forward" if inspection.is_a(called, nn.Module) else "__call__"
        method = getattr(kind, name, None)
        if isinstance(method, FunctionType) and _is_users(method):
            self.read(method, called, inside, depth)
            return
        head = kind.__module__.partition(".")[0]
        never = inspection.number(inspection.held(called, "p", 1)) == 0
        if randomness.is_random_transform(head, kind.__name__) and place is not None and not never:
            self._drawn.append((None, Draw("torch", place, kind.__name__)))
        held = inspection.held(called, "transforms")
        if inspection.is_a(held, nn.ModuleList):
            held = list(held._modules.values())
        if inspection.is_a(held, (list, tuple)):
            for each in inspection.entries(held):
                self.apply(each, place, inside, depth + 1)

    def read(self, function: FunctionType, owner: Any, inside: tuple[str, ...], depth: int) -> None:
        if (function, id(owner)) in self._seen or not _is_users(function) or depth > _DEPTH:
            return
        self._seen.add((function, id(owner)))
        node = _node_of(function)
        if node is None:
            return
        scope = _Scope(function, owner, node)
        body = node.body if isinstance(node.body, list) else [node.body]
        for statement in body:
            self._walk(statement, scope, (*inside, function.__qualname__), depth)

    def _walk(self, node: ast.AST, scope: _Scope, inside: tuple[str, ...], depth: int) -> None:
        if isinstance(node, (ast.If, ast.IfExp)):
            test = scope.resolve(node.test)
            chosen: list[ast.AST] = [node.test]
            for branch, wanted in ((node.body, True), (node.orelse, False)):
                if has_plain_truth(test) and bool(test) is not wanted:
                    continue
                chosen += branch if isinstance(branch, list) else [branch]
            for each in chosen:
                self._walk(each, scope, inside, depth)
            return
        if isinstance(node, ast.Call):
            self._call(node, scope, inside, depth)
        elif isinstance(node, ast.Subscript):
            read = scope.resolve(node.value)
            if inspection.is_a(read, Dataset):
                self.read_dataset(read, depth + 1)
        for child in ast.iter_child_nodes(node):
            self._walk(child, scope, inside, depth)

    def _call(self, node: ast.Call, scope: _Scope, inside: tuple[str, ...], depth: int) -> None:
        place = scope.place(node)
        for keyword in node.keywords:
            own = scope.resolve(keyword.value) if keyword.arg == "generator" else None
            if _is_generator(own):
                self._own(own, keyword.value, place, scope, inside)
                return
        function, receiver = node.func, UNKNOWN
        name = function.attr if isinstance(function, ast.Attribute) else ""
        if isinstance(function, ast.Attribute):
            receiver = scope.resolve(function.value)
            if _is_generator(receiver):
                if name in randomness.RESEEDS:
                    self._reseeded.add(id(receiver))
                elif name not in randomness.NO_DRAW:
                    self._own(receiver, function.value, place, scope, inside)
                return
        called = scope.resolve(function)
        library = _library(receiver, name, called)
        if library:
            self._drawn.append((None, Draw(library, place, self._augmenting(inside))))
        elif called is not UNKNOWN:
            self.apply(called, place, inside, depth + 1)
        elif isinstance(function, ast.Name):
            for each in scope.each_of(function.id):
                self.apply(each, place, inside, depth + 1)

    def _own(
        self,
        generator: Any,
        node: ast.expr,
        place: Location,
        scope: _Scope,
        inside: tuple[str, ...],
    ) -> None:
        if id(generator) not in self._made:
            self._made[id(generator)] = scope.made(node)
        draw = Draw("", place, self._augmenting(inside), self._made[id(generator)])
        self._drawn.append((id(generator), draw))


class _Scope:
    """The source of a function, and the values of its names."""

    def __init__(self, function: FunctionType, owner: Any, node: Any) -> None:
        self._function = function
        self._node = node
        self._names = FunctionNames(function, owner, node)

    def resolve(self, node: ast.AST) -> Any:
        """The object that an expression is, as far as that takes no running of code."""
        return value_of(node, self._names.named)

    def each_of(self, name: str) -> list[Any]:
        """The entries of the list that a loop binds a name to: `for step in self.steps`."""
        for node in ast.walk(self._node):
            if isinstance(node, ast.For) and getattr(node.target, "id", "") == name:
                gone_through = self.resolve(node.iter)
                if inspection.is_a(gone_through, (list, tuple)):
                    return [*inspection.entries(gone_through)]
        return []

    def place(self, node: ast.expr) -> Location:
        return _place_of(node, self._function)

    def made(self, node: ast.expr) -> Location | None:
        """Where a generator that is spelled so was put where it is found."""
        path = self._function.__code__.co_filename
        if isinstance(node, ast.Attribute):
            owner = self.resolve(node.value)
            for kind in type(owner).__mro__:
                for method in vars(kind).values():
                    if isinstance(method, FunctionType) and _is_users(method):
                        found = _assigned(_node_of(method), node.attr)
                        if found is not None:
                            return _place_of(found, method)
        if isinstance(node, ast.Name):
            found = _assigned(source_map.source_of(path).tree, node.id)
            if found is not None:
                return class_source.place_of(path, found)
        return None


def _place_of(node: ast.expr, function: FunctionType) -> Location:
    name = function.__qualname__.replace(".<locals>", "")
    return class_source.place_of(function.__code__.co_filename, node, name)


def _assigned(tree: ast.AST | None, name: str) -> ast.expr | None:
    """The value that `self.name = ...` or `name = ...` gives."""
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                if getattr(target, "attr", getattr(target, "id", None)) == name:
                    return node.value
    return None


def _is_generator(value: object) -> bool:
    """A random generator that somebody has made."""
    if inspection.is_a(value, random.Random):
        return value is not getattr(random, "_inst", None)
    if inspection.is_a(value, torch.Generator):
        return value is not torch.default_generator
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return False
    made = inspection.is_a(value, (numpy.random.Generator, numpy.random.RandomState))
    return made and value is not getattr(numpy.random.mtrand, "_rand", None)


def _library(receiver: Any, name: str, called: Any) -> str:
    """Whose global generator a call draws from; empty if none."""
    numpy = sys.modules.get("numpy")
    bound = called.__self__ if type(called) in _BOUND else None
    name = name or (called.__name__ if type(called) in _NAMED else "")
    if not isinstance(name, str) or name in randomness.NO_DRAW:
        return ""
    if receiver is random or (bound is not None and bound is getattr(random, "_inst", None)):
        return "random"
    if numpy is not None:
        is_global = bound is not None and bound is getattr(numpy.random.mtrand, "_rand", None)
        if receiver is numpy.random or is_global:
            return "numpy"
    if name in randomness.TORCH_DRAWS and (
        receiver is torch or called is getattr(torch, name, None)
    ):
        return "torch"
    return "torch" if name in randomness.IN_PLACE_DRAWS and receiver is UNKNOWN else ""


def _is_users(function: FunctionType) -> bool:
    return kind_of(function.__code__.co_filename) == "user"


def _node_of(function: FunctionType) -> Any:
    """The source of a function, or of a lambda; None where two may be meant."""
    tree = source_map.source_of(function.__code__.co_filename).tree
    line = function.__code__.co_firstlineno
    is_lambda = function.__name__ == "<lambda>"
    found: list[Any] = []
    for node in ast.walk(tree) if tree is not None else ():
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = [node.lineno, *(each.lineno for each in node.decorator_list)]
            if line in lines and node.name == function.__name__:
                found.append(node)
        elif isinstance(node, ast.Lambda) and node.lineno == line and is_lambda:
            found.append(node)
    return found[0] if len(found) == 1 else None


# ------------------------------------------------------------------------------- seeds


def _plain_function(function: Any) -> FunctionType | None:
    while inspection.is_a(function, functools.partial):
        function = function.func
    if not inspection.is_a(function, _NAMED):
        function = getattr(type(function), "__call__", None)  # noqa: B004
    if inspection.is_a(function, MethodType):
        function = function.__func__
    return function if inspection.is_a(function, FunctionType) and _is_users(function) else None


def _touches_dataset(function: Any) -> bool:
    """A `worker_init_fn` that may reach into the data set itself (or is not understood)."""
    plain = _plain_function(function)
    node = _node_of(plain) if plain is not None else None
    if node is None:
        return True
    return randomness.mentions_dataset(node)


def _seeds_of(function: Any) -> list[WorkerSeed] | None:
    """The generators that a `worker_init_fn` seeds; None if it cannot be read."""
    plain = _plain_function(function)
    node = _node_of(plain) if plain is not None else None
    if plain is None or node is None:
        return None
    scope = _Scope(plain, None, node)
    calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
    strange = any(not _PLAIN_CALLS.fullmatch(ast.unparse(each.func)) for each in calls)
    found = []
    for call in calls:
        owner = ast.unparse(call.func)
        if call.args and owner.endswith(("seed", "manual_seed")):
            written = ast.unparse(call.args[0])
            library = "torch" if owner.startswith("torch") else "numpy"
            library = "random" if owner == "random.seed" else library
            constant = not strange and not CHANGES.search(written)
            found.append(WorkerSeed(library, constant, scope.place(call)))
    return found
