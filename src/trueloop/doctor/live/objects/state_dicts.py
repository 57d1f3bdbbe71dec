"""The registry of a program's state: state dicts, files' contents, and containers of both.

A dict cannot be referred to weakly, its tensors can: a state dict, or what came out of a file, is
known again by them wherever the program has put it.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.known_values import DictValue, Sequence, Value
from trueloop.doctor.model.things import Checkpoint, Loop, StateDict

if TYPE_CHECKING:
    from trueloop.doctor.live.objects.registry import ObjectRegistry

IN_MEMORY = "<memory>"
"""The file of what is written to or read from the program's own memory."""
_SOME = 4
"""Tensors of a dict by which it is known again."""
_FILES = 16
"""Files whose numbers are remembered."""
_COUNTS = re.compile(r"epoch|step|iter|start|round", re.I)


class StateDictFacts:
    """The facts about state dicts and files' contents."""

    def __init__(self, things: ObjectRegistry) -> None:
        self._things = things
        self._files: list[Checkpoint] = []

    # ------------------------------------------------------------------ state dicts

    def taken(self, state: Any, owner: Any, made: Location) -> StateDict:
        """The result of a module's `state_dict()`."""
        thing = StateDict(owner=owner, made=made, known=True)
        thing.keys = _keys(state)
        for each in _some(state):
            self._things.states.put(each, thing)
        return thing

    def of(self, value: object, depth: int = 4) -> Value | None:
        """The thing for what is saved or loaded: a model, a state dict, a file's contents, or a
        container of these."""
        if inspection.is_a(value, nn.Module):
            return self._things.model(value)
        if inspection.is_a(value, dict):
            found = self._known(value)
            if found is not None or not depth:
                return found
            held = {
                str(key): self.of(each, depth - 1)
                for key, each in inspection.items(value)
                if type(key) in (str, int)
            }
            return DictValue({key: each for key, each in held.items() if each is not None})
        if inspection.is_a(value, (list, tuple)) and depth:
            parts = [self.of(each, depth - 1) for each in inspection.entries(value)]
            return Sequence("list", [each for each in parts if each is not None])
        return None

    def whole(self, state: Value | None, value: object) -> Value | None:
        """The file itself, where all that it holds is handed on as a state dict."""
        held = state.entries.values() if isinstance(state, DictValue) else ()
        roots = {each.inside for each in held if isinstance(each, Checkpoint)}
        root = roots.pop() if len(roots) == 1 else None
        return root if root is not None and root.keys == _keys(value) else state

    def _known(self, value: Mapping[Any, Any]) -> StateDict | Checkpoint | None:
        for each in _some(value):
            found = self._things.states.get(each)
            if found is not None:
                return found if found.keys == _keys(value) else _edited(found)
        return None

    # ------------------------------------------------------------------ files

    def loaded(self, value: object, file: str, made: Location) -> Checkpoint:
        """The result of `torch.load`."""
        root = Checkpoint(file=file, made=made, known=True, keys=_keys(value))
        root.counts = _counts(value) | _counts_of_name(file)
        root.numbers = _numbers(value)
        for each in _dicts(value):
            inner = root
            if each is not value:
                inner = Checkpoint(file=file, made=made, known=True, inside=root, keys=_keys(each))
            for tensor in _some(each):
                self._things.states.put(tensor, inner)
        self._files = [*self._files[-_FILES:], root]
        return root

    def resumes(self, loop: Loop) -> None:
        """Note the file whose count a loop resumes."""
        start, path = loop.begins_at, loop.place.path
        for file in self._files:
            found = [
                name
                for name, count in loop.counters.items()
                if count > 0
                and (count in file.counts or file.numbers.get(name.rpartition(".")[2]) == count)
            ]
            if start is not None and start > 0 and {start, start - 1} & file.counts:
                found.append(loop.begin_spelled)
            if any(source_map.is_computed(path, name) for name in found):
                loop.resumed_from = file


def path_of(file: object) -> str:
    """How a file is named: its path, or a note that the file is temporary or in memory."""
    if type(file).__module__ == "_io":  # what `open` gives
        file = getattr(file, "name", None)
    if not inspection.is_a(file, (str, bytes)) and not inspection.is_a(file, PurePath):
        return IN_MEMORY
    path = os.fsdecode(file)
    folder, name = os.path.split(os.path.abspath(path))
    own = folder == os.path.abspath(tempfile.gettempdir())
    if own and re.fullmatch(re.escape(tempfile.gettempprefix()) + r"\w{8}", name):
        return IN_MEMORY  # a temporary file's own name
    return path


def _keys(value: object) -> tuple[int, int]:
    """Equal for equal keys."""
    if not inspection.is_a(value, dict):
        return (0, 0)
    keys = frozenset(key for key in dict.keys(value) if type(key) is str)
    return dict.__len__(value), hash(keys)


def _some(value: object) -> list[torch.Tensor]:
    """A few of the tensors that a dict contains directly."""
    found: list[torch.Tensor] = []
    for each in dict.values(value) if inspection.is_a(value, dict) else ():
        if inspection.is_tensor(each):
            found.append(each)
            if len(found) == _SOME:
                break
    return found


def _edited(found: StateDict | Checkpoint) -> StateDict | Checkpoint:
    return replace(found, edited=True)


def _dicts(value: object, depth: int = 3) -> Iterator[dict[Any, Any]]:
    if inspection.is_a(value, dict):
        yield value
        for each in inspection.entries(value) if depth else ():
            yield from _dicts(each, depth - 1)


def _counts(value: object) -> frozenset[int]:
    """The numbers of a file that say how far the run had come."""
    return frozenset(count for key, count in _numbers(value).items() if _COUNTS.search(key))


def _numbers(value: object) -> dict[str, int]:
    """The whole numbers of a file by their keys."""
    return {
        key: number
        for each in _dicts(value, 1)
        for key, number in inspection.items(each)
        if type(number) is int and type(key) is str
    }


def _counts_of_name(file: str) -> frozenset[int]:
    """The numbers in a file's name that says how far the run had come: `epoch_12.pt`."""
    name = os.path.basename(file)
    return frozenset(map(int, re.findall(r"\d+", name)) if _COUNTS.search(name) else ())
