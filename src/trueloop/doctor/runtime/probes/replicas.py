"""Are the parameters that DistributedDataParallel keeps alike still alike on all ranks?

No rank ever waits for another: each puts a few numbers of its own into the store that the process
group was made with, when a wrapper is called; the first rank reads later what has come in.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
from torch import nn

from trueloop.doctor.events import Event
from trueloop.doctor.runtime import program, ranks
from trueloop.doctor.runtime.probes import Probe, measures
from trueloop.doctor.runtime.things import Weak

_AT = (11, 21, 31, 41, 49)
"""Calls of a wrapper, while all of them are looked at."""
_IN_A_ROW = 3
_DIFFERS = 1e-3
"""Of a parameter's size: what different processors round differently is far below."""
_PARAMETERS = 64
_NUMBERS = 8
_WAITING = 8
_KEEPS_APART = re.compile(r"local_?sgd|model_?averag|diloco|gossip", re.I)


_GONE = (RuntimeError, ValueError)
"""The store is: its process has ended, or the program has taken the group down."""


class Look(NamedTuple):
    """What one rank says of a wrapper."""

    updates: list[int]
    """At each look: where they differ, the ranks do not do the same."""
    optimizers: int
    rates: list[float]
    values: list[list[float]]
    """Of each parameter: its size, and some of its numbers."""


class Waiting(NamedTuple):
    """A look that the other ranks' are awaited for; their keys in the store."""

    keys: list[str]
    wrapper: Any
    own: Look


class Record:
    """What is known of a wrapper."""

    def __init__(self, index: int) -> None:
        self.index = index
        self.calls = 0
        self.updates: list[int] = []
        self.row = 0
        """Looks in a row at which it differed."""
        self.same: int | None = None
        """Updates after which it was still the same."""
        self.told = False

    def has_new(self, updates: int) -> bool:
        """It was compared all along, and not yet after so many updates."""
        return len(self.updates) >= len(_AT) and self.updates[-1] != updates


class Replicas(Probe):
    """Compares what ranks hold. It says nothing where parameters are averaged by hand, or gradients
    reduced in a way of the program's own: there they differ on purpose."""

    def __init__(self, watcher: Any) -> None:
        super().__init__(watcher)
        self._records = Weak()
        self._wrappers = 0
        self._waiting: list[Waiting] = []
        self._whole = True
        """All calls were looked at until now."""
        self._is_off = not dist.is_available()

    def after_forward(self, module: Any, given: Any, output: Any, event: Event) -> None:
        self._called(module)

    def called(self, module: Any, outer: list[Any], output: Any) -> None:
        self._called(module)

    def unwatched(self) -> None:
        self._read()
        self._whole = False

    def _called(self, module: Any) -> None:
        if not isinstance(module, nn.parallel.DistributedDataParallel) or self._is_off:
            return
        if not module.training or not torch.is_grad_enabled() or measures.capturing():
            return
        record = self._records.get(module)
        if record is None:
            record = Record(self._wrappers)
            self._wrappers += 1
            self._records.put(module, record)
        record.calls += 1
        self._read()
        updates = self.watcher.updates
        if self._whole and record.calls in _AT:
            self._look(module, record, f"call {record.calls}")
        elif not self._whole and _is_mark(updates) and record.has_new(updates):
            self._look(module, record, f"update {updates}")

    # ------------------------------------------------------------------ the store

    def _look(self, module: Any, record: Record, when: str) -> None:
        record.updates.append(self.watcher.updates)
        del record.updates[: -2 * len(_AT)]
        group = dist.get_process_group_ranks(module.process_group)
        if record.told or len(group) < 2 or 0 not in group or module._comm_hooks:
            return
        own = _look_at(self.watcher, module, record)
        if own is None:
            return
        name = f"trueloop/{record.index}/{when}/"
        if ranks.rank():
            try:
                store = dist.distributed_c10d._get_default_store()
                store.set(f"{name}{ranks.rank()}", json.dumps(own))
            except _GONE:
                self._is_off = True
            return
        others = [f"{name}{rank}" for rank in group if rank]
        self._waiting = [*self._waiting, Waiting(others, self.watcher.things.model(module), own)]
        self._waiting = self._waiting[-_WAITING:]

    def _read(self) -> None:
        """Compare with what has come in since; nothing is waited for."""
        if not self._waiting or self._is_off or not dist.is_initialized():
            return
        for waiting in list(self._waiting):
            try:
                store = dist.distributed_c10d._get_default_store()
                if not store.check(waiting.keys):
                    continue
                looks = [Look(*json.loads(store.get(key))) for key in waiting.keys]
                for key in waiting.keys:
                    store.delete_key(key)
            except _GONE:
                self._is_off = True
                return
            self._waiting.remove(waiting)
            self._compare(waiting, looks)

    # ------------------------------------------------------------------ the comparison

    def _compare(self, waiting: Waiting, looks: list[Look]) -> None:
        model, own = waiting.wrapper, waiting.own
        for module, record in self._records.items():
            if self.watcher.things.model(module) is not model or record.told:
                continue
            if any(each[:2] != own[:2] or len(each.values) != len(own.values) for each in looks):
                record.row = 0  # they do not do the same: nothing is to be compared
                return
            apart = [_apart(own, each) for each in looks]
            worst = max(range(len(looks)), key=lambda rank: max(apart[rank], default=0.0))
            if max(apart[worst], default=0.0) <= _DIFFERS:
                record.row, record.same = 0, own.updates[-1]
                return
            record.row += 1
            if record.row == _IN_A_ROW:
                self._tell(module, record, waiting, looks[worst], worst, apart[worst])

    def _tell(
        self, module: Any, record: Record, waiting: Waiting, other: Look, worst: int,
        apart: list[float],
    ) -> None:  # fmt: skip
        record.told = True
        model = waiting.wrapper
        if _averages(model.made.path):
            return
        names = [name for name, _ in _compared(module)]
        most = max(range(len(apart)), key=apart.__getitem__)
        measures.say(
            self.watcher, sys._getframe(), "ranks differ", model,
            place=model.made, rank=int(waiting.keys[worst].rpartition("/")[2]),
            updates=waiting.own.updates[-1], parameter=names[most], by=apart[most],
            count=sum(each > _DIFFERS for each in apart), of=len(apart), same=record.same,
            rates=(waiting.own.rates, other.rates),
        )  # fmt: skip


def _is_mark(updates: int) -> bool:
    """One of the updates that every watcher looks at: 100 and half as much again, each plus two."""
    mark = 100
    while mark + 2 < updates:
        mark = int(mark * 1.5)
    return mark + 2 == updates


def _compared(module: Any) -> list[tuple[str, Any]]:
    """Parameters that a wrapper keeps alike, some of many."""
    found = [
        (name, each) for name, each in module.module.named_parameters()
        if each.requires_grad and name not in module.parameters_to_ignore
        and each.is_floating_point() and each.numel() and not hasattr(each, "to_local")
    ]  # fmt: skip
    return found[:: -(-len(found) // _PARAMETERS) or 1]


def _look_at(watcher: Any, module: Any, record: Record) -> Look | None:
    found = _compared(module)
    if not found:
        return None
    numbers = []
    for _, each in found:
        flat = each.detach().reshape(-1)
        step = max(1, len(flat) // _NUMBERS)
        size = torch.linalg.vector_norm(flat, dtype=torch.float32) / len(flat) ** 0.5
        numbers.append(torch.cat([size[None], flat[::step][:_NUMBERS].float()]))
    values = torch.cat(numbers).tolist()
    rows = []
    for each in numbers:
        rows.append(values[: len(each)])
        del values[: len(each)]
    rates = [
        rate for each in measures.optimizers(watcher) for rate in measures.rates(each)
    ]  # fmt: skip
    return Look(list(record.updates), len(watcher.things.optimizers), rates, rows)


def _apart(one: Look, other: Look) -> list[float]:
    """Of each parameter: the largest difference, as a share of its size."""
    shares = []
    for mine, yours in zip(one.values, other.values, strict=True):
        size = max(mine[0], yours[0])
        most = max(abs(a - b) for a, b in zip(mine[1:], yours[1:], strict=True))
        shares.append(most / size if size > 0 and most == most else 0.0)
    return shares


def _averages(path: str) -> bool:
    """The program brings parameters together by hand, or knows of ways to keep them apart."""
    text, tree = program.source_of(path).text, program.source_of(path).tree
    if tree is None or _KEEPS_APART.search(text):
        return True
    gathers = ("all_reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce")
    about = re.compile(r"param|weight|\.data\b|state|model|\bp\b|flat|vector")
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and node.args:
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            given = ast.unparse(node.args[0])
            if name in gathers and about.search(given) and "grad" not in given:
                return True
    return False
