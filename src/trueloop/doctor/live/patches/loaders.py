"""`DataLoader`: made, iterated over, asked for a batch."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from time import perf_counter
from types import FrameType
from typing import TYPE_CHECKING, Any

from torch.utils.data import DataLoader, DistributedSampler, Subset, dataloader

from trueloop.doctor.live.frames import source_map, user_frames
from trueloop.doctor.live.objects import autograd_graph, inspection
from trueloop.doctor.live.probes import worker_draws
from trueloop.doctor.model.events import BatchFetched, Made, Used
from trueloop.doctor.model.things import Loader, Sampler, Tensor

if TYPE_CHECKING:
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from trueloop.doctor.live.hub import R
    from trueloop.doctor.live.patches.patching import FinishedCall, Patches
    from trueloop.doctor.live.recorder import Recorder


def install(recorder: Recorder, patches: Patches) -> None:
    hub = recorder.hub
    patches.after(hub, DataLoader, "__init__", partial(_made, recorder))
    patches.replace(DataLoader, "__iter__", partial(_iter, recorder))
    iterator = dataloader._BaseDataLoaderIter
    patches.replace(iterator, "__next__", partial(_next, recorder))
    patches.replace(iterator, "_next_index", partial(_next_index, recorder))
    several = dataloader._MultiProcessingDataLoaderIter
    patches.replace(several, "_shutdown_workers", partial(_stop, recorder))
    patches.after(hub, Subset, "__init__", partial(_part, recorder))
    patches.after(hub, DistributedSampler, "__init__", partial(_sampler, recorder))
    patches.after(hub, DistributedSampler, "set_epoch", partial(_epoch_is_set, recorder))


def _made(recorder: Recorder, call: FinishedCall) -> None:
    loader = call.args[0]
    thing = recorder.things.loader(loader, recorder.place(call.frame))
    recorder.hub.guarded(worker_draws.look_at, loader, thing)
    recorder.emit(Made, call.frame, thing=thing)


def _iter(
    recorder: Recorder, original: Callable[[DataLoader[Any]], _BaseDataLoaderIter]
) -> Callable[[DataLoader[Any]], _BaseDataLoaderIter]:
    hub = recorder.hub

    def __iter__(self: DataLoader[Any]) -> _BaseDataLoaderIter:
        begin = perf_counter()
        iterator = original(self)
        end = perf_counter()
        frame = sys._getframe(1)

        def say() -> None:
            hub.sample(why=("iter", frame.f_code, frame.f_lasti))
            thing = recorder.things.loader(self)
            if isinstance(thing.sampler, Sampler):
                _note_epoch(self, thing.sampler)
            recorder.things.objects.put(iterator, thing)
            hub.loader_begins(self, thing, iterator, begin, end)

        hub.guarded(say)
        return iterator

    return __iter__


def _note_epoch(loader: DataLoader[Any], thing: Sampler) -> None:
    """The epoch of a sampler may be set by hand, too."""
    for each in (inspection.held(loader, "sampler"), inspection.held(loader, "batch_sampler")):
        if inspection.is_a(each, DistributedSampler):
            epoch = inspection.held(each, "epoch")
            thing.epoch_set |= thing.epoch not in (None, epoch)
            thing.epoch = epoch


def _part(recorder: Recorder, call: FinishedCall) -> None:
    """Where a part of a data set was made."""
    thing = recorder.things.dataset(call.args[0])
    if thing is not None:
        thing.made = recorder.place(call.frame)


def _sampler(recorder: Recorder, call: FinishedCall) -> None:
    thing = recorder.things.sampler(call.args[0])
    thing.made = recorder.place(call.frame)
    thing.name = source_map.assigned_to(thing.made)


def _epoch_is_set(recorder: Recorder, call: FinishedCall) -> None:
    """Once an epoch, and noted even while nobody looks."""
    thing = recorder.things.sampler(call.args[0])
    thing.epoch_set = True
    if recorder.hub.sampling:
        what = "torch.utils.data.DistributedSampler.set_epoch"
        recorder.emit(Used, call.frame, what=what, subject=thing)


def _next_index(
    recorder: Recorder, original: Callable[[_BaseDataLoaderIter], object]
) -> Callable[[_BaseDataLoaderIter], object]:
    hub = recorder.hub

    def _next_index(self: _BaseDataLoaderIter) -> object:
        indices = original(self)
        if (hub.sampling or hub.checks_finite) and type(indices) is list:
            try:
                _asked(recorder, self, indices)
            except Exception as error:  # whatever it is, the program continues
                hub.failed(error, missed=True)
        return indices

    return _next_index


def _asked(recorder: Recorder, iterator: _BaseDataLoaderIter, indices: list[Any]) -> None:
    # Workers are sent batches ahead: what is sent now comes back under this number.
    number = inspection.held(iterator, "_send_idx", 0)
    asked = recorder.things.asked.get(iterator)
    if asked is None:
        asked = {}
        recorder.things.asked.put(iterator, asked)
    asked[number] = indices
    while len(asked) > 64:
        del asked[next(iter(asked))]


def _next(
    recorder: Recorder, original: Callable[[_BaseDataLoaderIter], R]
) -> Callable[[_BaseDataLoaderIter], R]:
    hub = recorder.hub
    clock, starts = hub.timer, hub.worker_starts

    def __next__(self: _BaseDataLoaderIter) -> R:
        if starts.fresh:
            return starts.first(__next__, self)
        if clock.on and clock.enter("data"):
            return clock.fetch(__next__, self)
        try:
            batch = original(self)
        except StopIteration:
            hub.guarded(lambda: _exhausted(recorder, self))
            raise
        if hub.checks_finite:
            hub.batch_fetched(self)
        if hub.sampling:
            frame = sys._getframe(1)
            hub.guarded(lambda: _fetched(recorder, self, batch, frame))
        return batch

    return __next__


def _stop(
    recorder: Recorder, original: Callable[[_BaseDataLoaderIter], None]
) -> Callable[[_BaseDataLoaderIter], None]:
    """The end of an iterator's workers."""

    hub = recorder.hub

    def _shutdown_workers(self: _BaseDataLoaderIter) -> None:
        hub.worker_starts.stop(original, self)

    return _shutdown_workers


def _exhausted(recorder: Recorder, iterator: _BaseDataLoaderIter) -> None:
    """The data have come to their end, and the loop over them with them."""
    for each in recorder.track().turns.open:
        if each.driver == id(iterator):
            each.loop.exhausted = True


def _fetched(
    recorder: Recorder, iterator: _BaseDataLoaderIter, batch: object, frame: FrameType
) -> None:
    hub = recorder.hub
    loader = recorder.things.objects.get(iterator)
    if not isinstance(loader, Loader):
        return
    here = user_frames.sites(frame)
    if not here:
        return
    track = recorder.track()
    moves, loop = track.turns.fetched(here, id(iterator), loader)
    recorder.follow(track, moves, here, frame)
    if loop is None or not hub.sampling:
        return
    asked = recorder.things.asked.get(iterator) or {}
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
            version=autograd_graph.version(each),
            position=position,
        )
        recorder.things.tensors.put(each, thing)
        parts.append(thing)
    event = recorder.send(
        track, BatchFetched, here, {"loop": loop, "loader": loader, "batch": tuple(parts)}
    )
    track.batch, track.iterator = tuple(parts), iterator
    hub.fetched(batch, event)
    track.iterator = None
