"""One rank's digest of a set of parameters, and how far two ranks are apart."""

from __future__ import annotations

import ast
import os
import re
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.probes import parameter_stats

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context

DIFFERS = 1e-3
"""Of a parameter's size: what different processors round differently is far below."""
_ALIKE = 1e-5
"""A share of a gradient's size: after averaging, ranks have the same one to the bit, or nearly."""
_PARAMETERS = 64
_NUMBERS = 8
_KEEPS_APART = re.compile(r"local_?sgd|model_?averag|diloco|gossip", re.I)
_GATHERS = ("all_reduce", "all_gather", "all_gather_into_tensor", "reduce")
_ABOUT = re.compile(r"param|weight|\.data\b|state|model|\bp\b|flat|vector")
Site = tuple[str, int]
"""A file and a line."""


class ReplicaDigest(NamedTuple):
    """One rank's digest of a set of parameters; plain values, as JSON has them."""

    updates: list[int]
    """Made until then, at this look and those before it: where they differ, the ranks do not do
    the same."""
    optimizers: int
    rates: list[float]
    values: list[list[float]]
    """Of each parameter: its size, and some of its numbers."""
    gradients: list[list[float]]
    """The same of each gradient; empty where there is none."""


class ReplicaDifference(NamedTuple):
    """How far two ranks are apart."""

    most: int
    """The parameter that differs most, by its place among those that were looked at."""
    by: float
    """Its largest difference, as a share of its size."""
    differing: int
    """Parameters that differ."""


def take(watcher: Context, parameters: list[Any], updates: list[int]) -> ReplicaDigest:
    """Read some numbers of each parameter and of its gradient, at once."""
    tensors = [each.detach() for each in parameters]
    gradients = [each.grad for each in parameters]
    rows = _rows([*tensors, *(each for each in gradients if each is not None)])
    values, left = rows[: len(tensors)], iter(rows[len(tensors) :])
    rates = [
        rate for each in watcher.things.live_optimizers() for rate in parameter_stats.rates(each)
    ]
    return ReplicaDigest(
        updates,
        len(watcher.things.optimizers),
        rates,
        values,
        [[] if each is None else next(left) for each in gradients],
    )


def _rows(tensors: list[Any]) -> list[list[float]]:
    numbers = []
    for each in tensors:
        flat = parameter_stats.local(each).reshape(-1)
        step = max(1, len(flat) // _NUMBERS)
        size = torch.linalg.vector_norm(flat, dtype=torch.float32) / len(flat) ** 0.5
        numbers.append(torch.cat([size[None], flat[::step][:_NUMBERS].float()]))
    if not numbers:
        return []
    values = torch.cat(numbers).tolist()  # one wait for the device, not one a tensor
    rows = []
    for row in numbers:
        rows.append(values[: len(row)])
        del values[: len(row)]
    return rows


def some(parameters: list[Any]) -> list[Any]:
    """Those that each rank has whole and trains, some of many."""
    found = [
        each for each in parameters
        if inspection.is_tensor(each) and each.requires_grad and each.is_floating_point()
        and each.numel() and not each.is_sparse and not hasattr(each, "to_local")
    ]  # fmt: skip
    return found[:: -(-len(found) // _PARAMETERS) or 1]


def are_averaged(one: ReplicaDigest, other: ReplicaDigest) -> list[bool]:
    """Of each parameter: both ranks are about to apply one gradient to it. No two ranks compute the
    same from different samples: they have averaged it, in the same update."""
    return [
        bool(mine and yours and len(mine) == len(yours) and mine[0] > 0)
        and all(abs(a - b) <= _ALIKE * mine[0] for a, b in zip(mine, yours, strict=True))
        for mine, yours in zip(one.gradients, other.gradients, strict=True)
    ]


def do_the_same(one: ReplicaDigest, other: ReplicaDigest) -> bool:
    """Both ranks have made as many updates with as many optimizers."""
    return one[:2] == other[:2]


def apart(one: ReplicaDigest, other: ReplicaDigest, counted: list[bool]) -> ReplicaDifference:
    """How far the parameters differ that are `counted`."""
    shares = [
        _share(mine, yours) if counts else 0.0
        for mine, yours, counts in zip(one.values, other.values, counted, strict=True)
    ]
    most = max(range(len(shares)), key=shares.__getitem__)
    return ReplicaDifference(most, shares[most], sum(each > DIFFERS for each in shares))


def _share(mine: list[float], yours: list[float]) -> float:
    """The largest difference of two parameters, as a share of their size."""
    size = max(mine[0], yours[0])
    most = max(abs(a - b) for a, b in zip(mine[1:], yours[1:], strict=True))
    return most / size if size > 0 and most == most else 0.0


# ---------------------------------------------------------------------- what the source says


def brings_together(path: str, early: set[Site]) -> bool:
    """The program, in this file or in other files of the project, brings parameters together by
    hand, or has ways to keep them apart. `early`: where it has copied some before its first update,
    as is done once."""
    return any(_brings_together(each, early) for each in {path, *_files_beside(path)})


def _files_beside(path: str) -> set[str]:
    """The program's own in the folder of this one and below it, as far as they are imported."""
    folder = os.path.join(os.path.dirname(os.path.abspath(path)), "")
    found = {getattr(module, "__file__", None) for module in list(sys.modules.values())}
    return {
        each
        for each in found
        if isinstance(each, str) and each.startswith(folder) and user_frames.kind_of(each) == "user"
    }


def _brings_together(path: str, early: set[Site]) -> bool:
    text, tree = source_map.source_of(path).text, source_map.source_of(path).tree
    if _KEEPS_APART.search(text):
        return True
    if tree is None:
        return bool(text)
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or not node.args:
            continue
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        given = ast.unparse(node.args[0])
        if not _ABOUT.search(given) or "grad" in given:
            continue
        lines = range(node.lineno, (node.end_lineno or node.lineno) + 1)
        is_early = any((path, line) in early for line in lines)
        if name in _GATHERS or (name == "broadcast" and not is_early):
            return True
    return False
