"""Which of several processes this is, and what in the source asks for it."""

from __future__ import annotations

import ast
import os
import re
import socket
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import torch.distributed as dist

from trueloop.doctor.live.frames import source_map
from trueloop.doctor.live.frames.user_frames import Site, place_at
from trueloop.doctor.live.hub import Hub
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.vocabulary import DIFFERS_BY_RANK

if TYPE_CHECKING:
    from torch.utils.data import DataLoader


def rank() -> int:
    """This process's number; 0 for a single one."""
    if dist.is_available() and dist.is_initialized():
        return dist.get_rank()
    found = os.environ.get("RANK", "0")
    return int(found) if found.isdecimal() else 0


def number() -> int | None:
    """This process's number in a group of several; None outside such a group."""
    if dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1:
        return dist.get_rank()
    return None


def remembered(hub: Hub) -> int | None:
    """The same, also when the group is gone."""
    known = number()
    if known is not None:
        hub.rank = known
    return hub.rank


def asked(written: str) -> bool:
    """An expression speaks of what differs between the processes."""
    return bool(DIFFERS_BY_RANK.search(written))


def shares(loader: DataLoader[Any], path: str, name: str) -> bool:
    """Ranks may well go through different data by this loader: the data set knows of ranks, the
    source cuts data by them, or a library is given the loader and may return a different one."""
    import torch

    dataset = inspection.held(loader, "dataset")
    for _ in range(5):
        if issubclass(type(dataset), torch.utils.data.IterableDataset):
            return True
        if any(DIFFERS_BY_RANK.search(each) for each in inspection.attributes(dataset)):
            return True
        dataset = inspection.held(dataset, "dataset")
    return source_map.cuts_by_rank(path) or source_map.given_away(path, name.rpartition(".")[2])


def differs(file: str, place: Location, here: list[Site]) -> bool | None:
    """Whether ranks write different files here, or only some of them write."""
    if file.startswith("<") or _contains_number(os.path.basename(file), rank()):
        return True
    if _contains_number(file, os.getpid()) or _contains_word(file, socket.gethostname()):
        return True
    if DIFFERS_BY_RANK.search(source_map.written(place, 1, "f")):
        return True
    places = [place_at(each.code, each.offset, each.line) for each in here]
    return any(_asks_above(each) for each in places if each.path)


def _contains_number(text: str, number: int) -> bool:
    return bool(re.search(rf"(?<!\d){number}(?!\d)", text))


def _contains_word(text: str, word: str) -> bool:
    """Not as a part of a longer one: a short host name occurs in random names of folders."""
    return bool(word and re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", text))


def _asks_above(place: Location) -> bool:
    """A condition around a line, or one before it that leaves its function, asks for the rank."""
    return any(_asks(place.path, test) for test in source_map.tests_above(place.path, place.line))


@lru_cache(maxsize=1024)
def _asks(path: str, test: str) -> bool:
    if DIFFERS_BY_RANK.search(test):
        return True
    # `if self.main:` where `self.main = rank == 0`, or `self.main = is_main()`.
    names = _names(test)
    values = [*source_map.assigned(path, names), *source_map.returned(path, names)]
    called = frozenset[str]().union(*(_names(value) for value in values))
    return any(
        DIFFERS_BY_RANK.search(value) for value in [*values, *source_map.returned(path, called)]
    )


def _names(expression: str) -> frozenset[str]:
    return frozenset(
        each.attr if isinstance(each, ast.Attribute) else each.id
        for each in ast.walk(ast.parse(expression, mode="eval"))
        if isinstance(each, (ast.Attribute, ast.Name))
    )
