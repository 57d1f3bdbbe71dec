"""The cost of starting a loader's workers again for every pass over its data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING, Any

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.objects import inspection
from trueloop.doctor.live.objects.registry import WeakMap
from trueloop.doctor.model.things import Loader

if TYPE_CHECKING:
    from torch.utils.data import DataLoader
    from torch.utils.data.dataloader import _BaseDataLoaderIter

    from trueloop.doctor.live.hub import Hub, R

_MOST = 64
"""Loaders that are followed."""


@dataclass
class Passes:
    """Passes over one loader's data, but the first one."""

    begun: int = 0
    count: int = 0
    """That have come to their end."""
    start: float = 0.0
    """When the first of them began."""
    seconds: float = 0.0
    """From there to the end of the last one."""
    lost: float = 0.0
    """Of them, to start and to stop workers."""
    state: Any = None
    """Of the data set, roughly."""
    changes: bool = False
    """The program changes the data set between passes: workers that live on would not see it."""


@dataclass
class LoaderPass:
    """One that is going on."""

    passes: Passes
    begin: float
    started: float
    """Seconds until its workers had been started."""
    first: float | None = None
    """Seconds that the program waited for its first batch."""


class WorkerStartup:
    """Of all loaders with workers that do not live on."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self.fresh = False
        """Read by the seam: a first batch is to come."""
        self.found: dict[Loader, Passes] = {}
        self._going = WeakMap[LoaderPass | None]()
        """Iterator -> Pass."""

    def begins(
        self,
        loader: DataLoader[Any],
        thing: Loader,
        iterator: _BaseDataLoaderIter,
        begin: float,
        end: float,
    ) -> None:
        """Workers have been started, as the iterator was made."""
        if loader.persistent_workers or loader.num_workers < 1:
            return
        if thing not in self.found and len(self.found) >= _MOST:
            return
        passes = self.found.setdefault(thing, Passes())
        state = _state(loader.dataset)
        passes.changes = passes.changes or (passes.begun > 0 and state != passes.state)
        passes.state = state
        passes.begun += 1
        if passes.begun == 2:
            passes.start = begin
        if passes.begun > 1:
            self._going.put(iterator, LoaderPass(passes, begin, end - begin))
            self.fresh = True

    @user_frames.passed_over
    def first(
        self, original: Callable[[_BaseDataLoaderIter], R], iterator: _BaseDataLoaderIter
    ) -> R:
        """Ask for a batch which may be the first one."""
        self.fresh = False
        begin = perf_counter()
        try:
            return original(iterator)
        finally:
            going = self._known(iterator)
            if going is not None and going.first is None:
                going.first = perf_counter() - begin

    def _known(self, iterator: _BaseDataLoaderIter) -> LoaderPass | None:
        try:
            return self._going.get(iterator)
        except Exception as error:  # whatever it is, the program continues
            self.hub.failed(error)
            return None

    @user_frames.passed_over
    def stop(
        self, original: Callable[[_BaseDataLoaderIter], None], iterator: _BaseDataLoaderIter
    ) -> None:
        """Stop an iterator's workers."""
        going = self._known(iterator)
        begin = perf_counter()
        original(iterator)
        try:
            self._stopped(iterator, going, begin, perf_counter())
        except Exception as error:
            self.hub.failed(error)

    def _stopped(
        self, iterator: _BaseDataLoaderIter, going: LoaderPass | None, begin: float, end: float
    ) -> None:
        if going is None or going.first is None or not self.hub.is_here:
            return
        self._going.put(iterator, None)
        batches = iterator._num_yielded
        if batches < 2:
            return
        whole, stopped = end - going.begin, end - begin
        each = max(0.0, whole - going.started - going.first - stopped) / (batches - 1)
        # A batch takes its worker no longer than this; the first one would be waited for anyway.
        waited = max(0.0, going.first - each * iterator._num_workers)
        going.passes.count += 1
        going.passes.seconds = end - going.passes.start
        going.passes.lost += going.started + stopped + waited


def _state(dataset: object, depth: int = 4) -> tuple[Any, ...]:
    """Changes when an attribute of a data set, or of one inside of it, is set to something else."""
    own = inspection.attributes(dataset)
    plain = (bool, int, float, str, type(None))
    seen = tuple((name, v if type(v) in plain else id(v)) for name, v in own.items())
    inner = own.get("dataset")
    return seen if inner is None or not depth else (*seen, _state(inner, depth - 1))
