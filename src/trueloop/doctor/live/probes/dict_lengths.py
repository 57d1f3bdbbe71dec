"""Batches that are dicts, whose length is taken for the number of samples."""

from __future__ import annotations

import ast
from collections import Counter, UserDict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from trueloop.doctor.live.frames.source_map import SourceFile, source_of
from trueloop.doctor.live.objects import autograd_graph
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.batch_lengths import batch_name, counted_lengths
from trueloop.doctor.model.events import Event
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.value_events import KeysCounted

if TYPE_CHECKING:
    from trueloop.doctor.live.context import Context

_LOOKS = 3
"""Batches of one loop that are looked at."""


class DictLengths(Probe):
    """The source of the loop shows what `len(batch)` is used for."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._looks: Counter[Location] = Counter()

    def fetched(self, batch: object, event: Event) -> None:
        self._looks[event.place] += 1
        if self._looks[event.place] > _LOOKS or not _counts_keys(batch):
            return
        assert isinstance(batch, (dict, UserDict))
        samples = {each.shape[0] for each in autograd_graph.tensors_in(batch) if each.dim()}
        keys = len(batch)
        if len(samples) != 1 or keys in samples:
            return
        file = source_of(event.place.path)
        for call in _lengths(file, event.place):
            self.watcher.measure(
                KeysCounted(
                    batch=getattr(call.args[0], "id", ""),
                    keys=keys,
                    samples=samples.pop() if samples else None,
                    place=Location(
                        event.place.path,
                        call.lineno,
                        call.col_offset + 1,
                        call.end_lineno or call.lineno,
                        (call.end_col_offset or 0) + 1,
                    ),
                    turns=event.turns,
                )
            )


def _counts_keys(batch: object) -> bool:
    """Its class counts entries: a dict, or one of the Python library's wrappers of one."""
    if isinstance(batch, UserDict):
        return type(batch).__len__ is UserDict.__len__
    return type(batch) is dict


def _lengths(file: SourceFile, place: Location) -> Iterator[ast.Call]:
    if file.tree is None:
        return
    for node in ast.walk(file.tree):
        if isinstance(node, (ast.For, ast.AsyncFor)):
            if node.iter.lineno <= place.line <= (node.iter.end_lineno or 0):
                yield from counted_lengths(file.tree, node.body, batch_name(node))
        elif isinstance(node, (ast.ListComp, ast.GeneratorExp)):
            first = node.generators[0]
            if first.iter.lineno <= place.line <= (first.iter.end_lineno or 0):
                yield from counted_lengths(file.tree, [node.elt], batch_name(first))
