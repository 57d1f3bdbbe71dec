"""`DataLoader`: made, iterated over, asked for a batch."""

from __future__ import annotations

import sys
import weakref
from time import perf_counter
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, DistributedSampler, Subset, dataloader

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes import worker_draws
from trueloop.doctor.live.watcher import quietly
from trueloop.doctor.model.events import BatchFetched, Made, Used
from trueloop.doctor.model.things import Loader, Tensor

if TYPE_CHECKING:
    from trueloop.doctor.live.patches.patching import Patches
    from trueloop.doctor.live.watcher import Watcher


def install(watcher: Watcher, patches: Patches) -> None:
    patches.replace(DataLoader, "__init__", lambda original: _made(watcher, original))
    patches.replace(DataLoader, "__iter__", lambda original: _iter(watcher, original))
    iterator = dataloader._BaseDataLoaderIter
    patches.replace(iterator, "__next__", lambda original: _next(watcher, original))
    patches.replace(iterator, "_next_index", lambda original: _next_index(watcher, original))
    several = dataloader._MultiProcessingDataLoaderIter
    patches.replace(several, "_shutdown_workers", lambda original: _stop(watcher, original))
    patches.replace(Subset, "__init__", lambda original: _part(watcher, original))
    patches.replace(DistributedSampler, "__init__", lambda original: _sampler(watcher, original))
    patches.replace(DistributedSampler, "set_epoch", lambda original: _told(watcher, original))


def _made(watcher: Watcher, original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)

        def say() -> None:
            thing = watcher.things.loader(self, watcher.place(frame))
            quietly(watcher, lambda: worker_draws.look_at(self, thing))
            watcher.emit(Made, frame, thing=thing)

        quietly(watcher, say)

    return __init__


def _iter(watcher: Watcher, original: Any) -> Any:
    def __iter__(self: Any) -> Any:
        begin = perf_counter()
        iterator = original(self)
        end = perf_counter()
        frame = sys._getframe(1)

        def say() -> None:
            watcher.look(why=("iter", frame.f_code, frame.f_lasti))
            thing = watcher.things.loader(self)
            watcher.things.objects.put(iterator, thing)
            watcher.loaders.put(iterator, weakref.ref(self))
            watcher.progress.begins()
            watcher.clock.begins(self, thing, iterator, begin, end)

        quietly(watcher, say)
        return iterator

    return __iter__


def _part(watcher: Watcher, original: Any) -> Any:
    """Where a part of a data set was made."""

    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)

        def note() -> None:
            thing = watcher.things.dataset(self)
            if thing is not None:
                thing.made = watcher.place(frame)

        quietly(watcher, note)

    return __init__


def _sampler(watcher: Watcher, original: Any) -> Any:
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)

        def note() -> None:
            thing = watcher.things.sampler(self)
            thing.made = watcher.place(frame)
            thing.name = source_map.assigned_to(thing.made)

        quietly(watcher, note)

    return __init__


def _told(watcher: Watcher, original: Any) -> Any:
    """Once an epoch, and noted even while nobody looks."""

    def set_epoch(self: Any, *args: Any, **kwargs: Any) -> None:
        original(self, *args, **kwargs)
        frame = sys._getframe(1)

        def note() -> None:
            thing = watcher.things.sampler(self)
            thing.epoch_told = True
            if watcher.looking:
                what = "torch.utils.data.DistributedSampler.set_epoch"
                watcher.emit(Used, frame, what=what, subject=thing)

        quietly(watcher, note)

    return set_epoch


def _next_index(watcher: Watcher, original: Any) -> Any:
    def _next_index(self: Any) -> Any:
        indices = original(self)
        if (watcher.looking or watcher.health.on) and type(indices) is list:
            try:
                _asked(watcher, self, indices)
            except Exception as error:  # whatever it is, the program goes on
                watcher.failed(error, missed=True)
        return indices

    return _next_index


def _asked(watcher: Watcher, iterator: Any, indices: list[Any]) -> None:
    # Workers are sent batches ahead: what is sent now comes back under this number.
    number = inspection.held(iterator, "_send_idx", 0)
    asked = watcher.asked.get(iterator)
    if asked is None:
        asked = {}
        watcher.asked.put(iterator, asked)
    asked[number] = indices
    while len(asked) > 64:
        del asked[next(iter(asked))]


def _next(watcher: Watcher, original: Any) -> Any:
    clock, starts = watcher.clock, watcher.clock.starts

    def __next__(self: Any) -> Any:
        if starts.fresh:
            return starts.first(__next__, self)
        if clock.on and clock.enter("data"):
            return clock.fetch(__next__, self)
        try:
            batch = original(self)
        except StopIteration:
            quietly(watcher, lambda: _exhausted(watcher, self))
            raise
        if watcher.health.on:
            try:
                watcher.health.fetched(self)
            except Exception as error:  # whatever it is, the program goes on
                watcher.failed(error, missed=True)
        if watcher.looking:
            frame = sys._getframe(1)
            quietly(watcher, lambda: _fetched(watcher, self, batch, frame))
        return batch

    return __next__


def _stop(watcher: Watcher, original: Any) -> Any:
    """The end of an iterator's workers."""

    def _shutdown_workers(self: Any) -> None:
        watcher.clock.starts.stop(original, self)

    return _shutdown_workers


def _exhausted(watcher: Watcher, iterator: Any) -> None:
    """The data have come to their end, and the loop over them with them."""
    for each in watcher.track().turns.open:
        if each.driver == id(iterator):
            each.loop.exhausted = True


def _fetched(watcher: Watcher, iterator: Any, batch: Any, frame: Any) -> None:
    loader = watcher.things.objects.get(iterator)
    if not isinstance(loader, Loader):
        return
    here = user_frames.sites(frame)
    if not here:
        return
    track = watcher.track()
    moves, loop = track.turns.fetched(here, id(iterator), loader)
    watcher.follow(track, moves, here, frame)
    if loop is None or not watcher.looking:
        return
    asked = watcher.asked.get(iterator) or {}
    in_order = getattr(iterator, "_in_order", True)
    track.indices = asked.get(getattr(iterator, "_rcvd_idx", 1) - 1, ()) if in_order else ()
    parts = []
    for position, each in enumerate(autograd_graph.tensors_in(batch)):
        role = ("input", "target")[position] if position < 2 else "batch"
        thing = Tensor(
            known=True,
            role=role,
            loader=loader,
            shape=tuple(each.shape),
            dtype=str(each.dtype).rpartition(".")[2],
            facts={"version": autograd_graph.version(each), "part": position},
        )
        watcher.things.tensors.put(each, thing)
        parts.append(thing)
    event = watcher.send(
        track, BatchFetched, here, {"loop": loop, "loader": loader, "batch": tuple(parts)}
    )
    held = watcher.loaders.get(iterator)
    track.batch, track.loader = tuple(parts), None if held is None else held()
    watcher.probes.tell("fetched", batch, event)
    track.loader = None
