"""Samples fetched one by one, by torch's DataLoader and its workers: map-style and iterable data
sets, whose randomness is made a function of the sample, and a DataLoader of the user's own.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import astuple, dataclass
from itertools import chain
from typing import Any

import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    IterableDataset,
)

from trueloop import seed as seeds
from trueloop.errors import ConfigError, DataError
from trueloop.feed.collate import (
    Collate,
    Collator,
    FetchedSamples,
    SampleFailure,
    failure,
    reason_of,
)
from trueloop.feed.cursor import Cursor, OwnState, timed, tracked
from trueloop.feed.kinds import length_of, reads_ranges
from trueloop.feed.order import SampleOrder
from trueloop.feed.parts import RankShare, Stretch, cut
from trueloop.feed.split import check_same, digest, split_of
from trueloop.feed.workers import iterate

_END = object()


@dataclass(frozen=True, kw_only=True)
class LoaderOptions:
    """How torch's DataLoader fetches."""

    workers: int = 0
    collate_fn: Collate | None = None
    prefetch_factor: int = 2
    persistent_workers: bool = True
    pin_memory: bool = False

    def loader(
        self, dataset: Dataset[Any], collator: type[Collator] = Collator, **batching: Any
    ) -> DataLoader[Any]:
        """A DataLoader with a private generator, so that it never draws from torch's global one.

        What it draws reaches no sample: each is fetched with generators seeded for it.
        """
        generator = torch.Generator().manual_seed(0)
        if self.workers:
            batching |= {
                "prefetch_factor": self.prefetch_factor,
                "persistent_workers": self.persistent_workers,
            }
        return DataLoader(
            dataset,
            num_workers=self.workers,
            collate_fn=collator(self.collate_fn),
            worker_init_fn=_leave_signals_to_the_parent,
            pin_memory=self.pin_memory,
            generator=generator,
            **batching,
        )


def _leave_signals_to_the_parent(worker: int) -> None:
    """Ctrl-C, or a scheduler's signal, reaches every process of the job; the one that trains
    decides what it means, and needs its workers for the current update."""
    for name in ("SIGINT", "SIGUSR1"):
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    if hasattr(signal, "sigwaitinfo"):
        # With SIGTERM a parent ends its workers, so that one cannot be ignored, whoever sends it.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
        threading.Thread(target=_end_when_the_parent_says, daemon=True).start()


def _end_when_the_parent_says() -> None:
    parent = os.getppid()
    while signal.sigwaitinfo({signal.SIGTERM}).si_pid != parent:
        pass
    os._exit(0)


def not_fetched(sample: int, epoch: int, error: Exception) -> SampleFailure:
    """Takes the place of a batch if one of its samples raised."""
    return failure(
        f"sample {sample} of epoch {epoch + 1} cannot be fetched, {reason_of(error)}: fix the "
        "sample or the data set's code, or leave the sample out",
        error,
    )


class _Samples(Dataset[Any]):
    """A map-style data set in which every sample is fetched with its own generators."""

    def __init__(self, dataset: Any, seed: int) -> None:
        self.dataset = dataset
        self.seed = seed
        self._epoch: int | None = None

    def __getitems__(self, key: tuple[int, list[int], list[int]]) -> list[Any] | SampleFailure:
        """The samples of one batch, which the sampler names by epoch, indices and the keys of what
        they draw."""
        epoch, indices, keys = key
        self._set_epoch(epoch)
        samples = []
        for index, word in zip(indices, keys, strict=True):
            seeds.seed_sample(self.seed, epoch, word)
            try:
                samples.append(self.dataset[index])
            except Exception as error:
                return not_fetched(index, epoch, error)
        return FetchedSamples(samples, indices)

    def _set_epoch(self, epoch: int) -> None:
        # Here, and not where the epoch begins, because the copy that matters is the worker's.
        if epoch != self._epoch:
            set_epoch(self.dataset, epoch)
            self._epoch = epoch


class _Ranges(_Samples):
    """An iterable data set that reads any range of its stream (`iter_range`)."""

    def __getitems__(self, key: tuple[int, list[int], list[int]]) -> list[Any] | SampleFailure:
        """The samples of one batch, which the sampler names by epoch and positions."""
        epoch, positions, _ = key
        self._set_epoch(epoch)
        first, stop = positions[0], positions[-1] + 1
        samples: list[Any] = []
        try:
            # For what the stream draws before a range's first sample.
            seeds.seed_sample(self.seed, epoch, -1)
            coming = iter(self.dataset.iter_range(first, stop))
            for position in positions:
                seeds.seed_sample(self.seed, epoch, position)
                sample = next(coming, _END)
                if sample is _END:
                    return SampleFailure(
                        f"iter_range({first}, {stop}) of {type(self.dataset).__name__} gave "
                        f"{len(samples)} samples instead of {stop - first}: fix it, or the "
                        "__len__ of the data set",
                        None,
                    )
                samples.append(sample)
        except Exception as error:
            return not_fetched(first + len(samples), epoch, error)
        return FetchedSamples(samples, positions)


class _EpochBatchSampler:
    """The batch sampler: whole batches as (epoch, sample indices), from any position on."""

    def __init__(self) -> None:
        self.coming: Iterator[tuple[Any, ...]] = iter(())

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        return self.coming


class MapSource:
    """A source of batches: a map-style data set (`__getitem__` and `__len__`), or one that reads by
    range (`iter_range` and `__len__`)."""

    def __init__(self, dataset: Any, seed: int, fetching: LoaderOptions) -> None:
        self.samples = length_of(dataset)
        self.is_stream = False
        self.device: torch.device | None = None
        self._dataset = (_Ranges if reads_ranges(dataset) else _Samples)(dataset, seed)
        self._fetching = fetching
        self._loader = _LoaderCache()

    def _open(self) -> tuple[DataLoader[Any], _EpochBatchSampler]:
        keys = _EpochBatchSampler()
        return self._loader_of(keys), keys

    def _loader_of(self, keys: Any) -> DataLoader[Any]:
        return self._fetching.loader(self._dataset, batch_sampler=keys)

    def _keys(
        self, order: SampleOrder, epoch: int, stretches: Sequence[Stretch]
    ) -> Iterator[tuple[Any, ...]]:
        """Names each batch by epoch, sample indices and the keys of what the samples draw."""
        for indices, keys in order.keyed_batches(stretches):
            listed = indices.tolist()
            yield epoch, listed, listed if keys is indices else keys.tolist()

    def batches(
        self, order: SampleOrder, epoch: int, stretches: Sequence[Stretch]
    ) -> Iterator[Any]:
        """The batches at these positions of the order; no other sample is fetched."""
        loader, keys = self._loader.free(self._open)
        keys.coming = self._keys(order, epoch, stretches)
        return self._loader.lend(_fetch(_started(loader), preserve=not self._fetching.workers))


class _SeededStream(IterableDataset[Any]):
    """An iterable data set in which every sample is drawn with its own generators: yields, for each
    batch, a rank's part of it and whether that is a stand-in; first, on several ranks, the digest
    of its first sample in place of a part."""

    def __init__(self, dataset: Any, batch_size: int, drop_last: bool, seed: int) -> None:
        self.dataset = dataset
        self.seed = seed
        self._batch_size = batch_size
        self._drop_last = drop_last
        # Epoch, first sample and the part, in shared memory: a worker that lives on must learn of
        # them.
        self.where = torch.zeros(5, dtype=torch.int64).share_memory_()  # type: ignore[no-untyped-call]
        self.goes_on = False
        """The data set has loaded its own state, in this process: it begins at the first sample,
        or, where that is an epoch's, with what its state at the end of the last epoch leaves."""

    def begin(self, epoch: int, start: int, part: RankShare) -> None:
        """Set where the next iterator begins: at the sample `start`, with this part of each batch
        from there on."""
        self.where.copy_(torch.tensor([epoch, start, *astuple(part)]))

    def __iter__(self) -> Iterator[Any]:
        # Read now, not at the first `next`: by then the next epoch may have begun.
        epoch, start, number, count, whole = self.where.tolist()
        goes_on, self.goes_on = self.goes_on, False
        samples = self._samples(epoch, start, goes_on)
        return self._cut(samples, RankShare(number, count, bool(whole)))

    def _cut(self, samples: Iterator[Any], part: RankShare) -> Iterator[Any]:
        try:
            if part.count > 1:
                first = next(samples, _END)
                yield 0 if first is _END else digest(first), False
                samples = iter(()) if first is _END else chain([first], samples)
            yield from cut(samples, self._batch_size, self._drop_last, part)
        except _SampleError as error:
            yield error.failure, False

    def _samples(self, epoch: int, start: int, goes_on: bool) -> Iterator[Any]:
        position = start if goes_on else 0
        try:
            if not position:  # else it knows the epoch: telling it again may send it to the start
                set_epoch(self.dataset, epoch)
            samples = self._opened(epoch)
            seeds.seed_sample(self.seed, epoch, position)
            sample = next(samples, _END)
            if sample is _END and goes_on and not start:
                # That was the rest of the last epoch.
                samples = self._opened(epoch)
                seeds.seed_sample(self.seed, epoch, position)
                sample = next(samples, _END)
            while sample is not _END:
                if position >= start:
                    yield sample
                position += 1
                seeds.seed_sample(self.seed, epoch, position)
                sample = next(samples, _END)
        except Exception as error:
            raise _SampleError(not_fetched(position, epoch, error)) from error

    def _opened(self, epoch: int) -> Iterator[Any]:
        # For what the stream draws before its first sample: the order of its files, say.
        seeds.seed_sample(self.seed, epoch, -1)
        return iter(self.dataset)


class _SampleError(Exception):
    """A stream could not give its next sample."""

    def __init__(self, failure: SampleFailure) -> None:
        super().__init__(failure.message)
        self.failure = failure


class _CutCollator(Collator):
    """Collates what `_SeededStream` yields."""

    def __call__(self, samples: Any) -> Any:
        part, is_stand_in = samples
        batch = part if isinstance(part, int) else super().__call__(part)
        return batch if isinstance(batch, SampleFailure) else (batch, is_stand_in)


class IterableSource:
    """A source of batches: an iterable data set, read by this process or one worker."""

    def __init__(
        self, dataset: Any, batch_size: int, drop_last: bool, seed: int, fetching: LoaderOptions
    ) -> None:
        self.samples = length_of(dataset) if has_len(dataset) else None
        self.is_stream = True
        self._dataset = dataset
        self._batching = (batch_size, drop_last, seed)
        self._batch_size = batch_size
        self._fetching = fetching
        self.own = OwnState(dataset)
        if fetching.workers and self.own.why is None:
            name = type(dataset).__name__
            self.own.why = f"{name} is read in a worker, which cannot be asked for its state"
        self._loader = _LoaderCache()

    def _open(self) -> tuple[DataLoader[Any], _SeededStream]:
        stream = _SeededStream(self._dataset, *self._batching)
        return self._fetching.loader(stream, _CutCollator, batch_size=None), stream

    def check_part(self, part: RankShare) -> None:
        """Raise `ConfigError` for a stream that is split by rank before `part` is taken of it."""
        if part.count > 1 and split_of(self._dataset) is not None:
            name = type(self._dataset).__name__
            raise ConfigError(
                f"the {name} is split by rank already, and Feed would take a part of each part: "
                "give the whole one, or put this one into a DataLoader"
            )

    def batches(self, epoch: int, start: int, place: Cursor, part: RankShare) -> Iterator[Any]:
        """The batches from position `start` on; without a state of the data set at this place,
        those before are read and thrown away. Each is reported to `place`."""
        self.check_part(part)
        if place.over:
            place.ended(place.own)
            return iter(())
        loader, stream = self._loader.free(self._open)
        resumed, place.resumed = place.resumed, False
        goes_on = self.own.why is None and place.own is not None and (start > 0 or resumed)
        if goes_on:
            with seeds.rng_preserved():
                if start:
                    set_epoch(self._dataset, epoch)
                self.own.give(place.own)
        stream.goes_on = goes_on
        stream.begin(epoch, start * self._batch_size, part)
        fetched = _fetch(_started(loader), preserve=not self._fetching.workers)
        if part.count > 1:
            fetched = self._the_same(fetched)
        batches = tracked(fetched, self.own, place)
        if resumed and start and not goes_on:
            batches = timed(batches, place, self.own)
        return self._loader.lend(batches)

    def _the_same(self, fetched: Iterator[Any]) -> Iterator[Any]:
        """`fetched`, after a look at whether all ranks read the same stream."""
        first, _ = next(fetched)
        check_same(first, type(self._dataset).__name__)
        yield from fetched


class _LoaderCache:
    """A DataLoader kept from epoch to epoch with its workers, unless an epoch still draws on it."""

    def __init__(self) -> None:
        self._kept: list[tuple[DataLoader[Any], Any]] = []
        self._borrower: weakref.ref[Any] | None = None
        # Were the loader collected in a circle of references (an exception that the user keeps
        # closes one), its queues would go before its workers hear of it, and torch would wait five
        # seconds for each. The finalizer owns it outside of any circle.
        weakref.finalize(self, self._kept.clear).atexit = False

    def free(self, create: Callable[[], tuple[DataLoader[Any], Any]]) -> Any:
        """The loader and what steers it: the kept ones, or fresh ones if those are in use."""
        borrower = self._borrower() if self._borrower is not None else None
        in_use = borrower is not None and borrower.gi_frame is not None
        if in_use or not self._kept:
            self._kept[:] = [create()]
        return self._kept[0]

    def lend(self, batches: Iterator[Any]) -> Iterator[Any]:
        """`batches`, a generator: the loader is in use until it is exhausted, closed or dropped."""
        self._borrower = weakref.ref(batches)
        return batches


def _started(loader: DataLoader[Any]) -> Iterator[Any]:
    """The loader's iterator, its workers started."""
    try:
        return iterate(loader)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        if not loader.num_workers or multiprocessing.get_start_method() == "fork":
            raise  # nothing was pickled
        raise DataError(
            f"the data set cannot be sent to worker processes ({error}): define its classes and "
            "functions at the top of a file, without lambdas, or write workers=0"
        ) from error


def _fetch(batches: Iterator[Any], preserve: bool) -> Iterator[Any]:
    """The batches of a loader of ours; `preserve` where they are fetched in this very process,
    whose generators the samples must not disturb."""
    while True:
        if preserve:
            with seeds.rng_preserved():
                batch = next(batches, _END)
        else:
            batch = next(batches, _END)
        if batch is _END:
            return
        if isinstance(batch, SampleFailure):
            raise batch.error()
        yield batch


def set_epoch(dataset: Any, epoch: int) -> None:
    """Tell it the epoch, if it wants to know."""
    method = getattr(dataset, "set_epoch", None)
    if callable(method):
        method(epoch)


def has_len(sized: Any) -> bool:
    """Whether `len` works; torch's loaders define it and raise where the data have none."""
    try:
        len(sized)
    except (TypeError, NotImplementedError):
        return False
    except Exception:
        return True  # it is there, and fails: `length_of` says how
    return True
