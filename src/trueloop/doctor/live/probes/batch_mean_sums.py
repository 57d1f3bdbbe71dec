"""Means of batches that are added up in plain numbers and divided by the number of samples."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.frames.live_expressions import FrameNames, value_of
from trueloop.doctor.live.frames.source_map import source_of
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.probes.probe import Probe
from trueloop.doctor.model.batch_totals import divided_total, iterated
from trueloop.doctor.model.events import Event, Loss
from trueloop.doctor.model.findings import Location
from trueloop.doctor.model.loss_meters import metered_total
from trueloop.doctor.model.value_events import MeansOverSamples

if TYPE_CHECKING:
    import torch

    from trueloop.doctor.live.context import Context
    from trueloop.doctor.model.things import Loader


class BatchMeanSums(Probe):
    """No hook sees numbers of Python's: the source of the loop around a loss shows what becomes of
    its value, and the objects show whose samples are counted."""

    def __init__(self, watcher: Context) -> None:
        super().__init__(watcher)
        self._seen: set[Location] = set()

    def lost(self, given: dict[str, Any], output: torch.Tensor, event: Event) -> None:
        assert isinstance(event, Loss)
        loader = event.turns[-1].loop.loader if event.turns else None
        if event.place in self._seen or loader is None or event.criterion.reduction != "mean":
            return
        self._seen.add(event.place)
        if isinstance(loader.batch_size, int) and loader.batch_size > 1:
            self._look(event, loader)

    def _look(self, event: Event, loader: Loader) -> None:
        file = source_of(event.place.path)
        call = file.call_at(event.place)
        around = file.loops_around(event.place.line)
        loop = around[-1] if around else None
        if file.tree is None or call is None or not isinstance(loop, ast.For):
            return
        if loop.lineno != event.turns[-1].loop.place.line:
            return
        found = divided_total(file.tree, loop, call) or metered_total(file.tree, loop, call)
        if found is None or not _counts_samples(found.counted, loop, event.place.path):
            return
        node = found.quotient
        place = Location(
            event.place.path,
            node.lineno,
            node.col_offset + 1,
            node.end_lineno or node.lineno,
            (node.end_col_offset or 0) + 1,
            event.place.function,
        )
        measured = MeansOverSamples(loader=loader).at(event)
        measured.place = place
        self.watcher.measure(measured)


def _counts_samples(counted: ast.expr, loop: ast.For, path: str) -> bool:
    """It is the data set of the loader that the loop goes through."""
    frame = user_frames.of_program(sys._getframe())
    if frame.f_code.co_filename != path:
        return False  # a library's loss may do more with the mean
    names = FrameNames(frame)
    try:
        loader = value_of(iterated(loop), names.named)
        if not inspection.is_a(loader, DataLoader):
            return False
        return value_of(counted, names.named) is inspection.held(loader, "dataset", names)
    finally:
        names.forget()
