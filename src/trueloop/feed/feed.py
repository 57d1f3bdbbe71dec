"""`Feed`: batches of any data in a known order at a known position."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import torch
from torch.utils.data import DataLoader

from trueloop import _options, device as devices, ranks, reprs, seed as seeds
from trueloop.errors import ConfigError, DataError, RunError
from trueloop.feed import kinds, transfer
from trueloop.feed.batched import BatchDataset, Batched
from trueloop.feed.collate import Collate
from trueloop.feed.cursor import Cursor
from trueloop.feed.draws import Draws
from trueloop.feed.epoch import Epoch
from trueloop.feed.external_loader import ExternalLoader, check_options, is_loader
from trueloop.feed.fetching import Source, fetch_ahead_of, stays_on_cpu
from trueloop.feed.loader import IterableSource, LoaderOptions, MapSource
from trueloop.feed.order import SampleOrder
from trueloop.feed.parts import RankShare, Stretch, portion
from trueloop.feed.shards.dataset import Shards
from trueloop.feed.shards.source import Sharded
from trueloop.feed.tensors import Arrays, is_arrays
from trueloop.feed.transform import Transform, checked
from trueloop.feed.weighted import WeightedOrder, weights_of
from trueloop.records import batch_samples, batch_tokens
from trueloop.shapes import COUNT, ListOf, Maybe, OneOf, Shape, problem

_TRANSFORM = "transform=lambda batch, draws: batch"
_COLLATE = "collate_fn=lambda samples: torch.stack(samples)"


class Feed:
    """Batches of `data`, epoch by epoch, the same ones whenever they are asked for again.

    `data` is one of:

    - a tensor, a numpy array or memory map, or a tuple, list or dict of these (nested or not) with
      one first dimension; a torch `TensorDataset`, or a `Subset` of one. Whole batches are taken
      by index, and have the structure of the data. No gradient flows back into the data: a tensor
      that requires one is detached.
    - a map-style data set (`__getitem__` and `__len__`), a list of samples included. What its
      `__getitem__` draws from torch, numpy or `random` depends on (seed, epoch, sample index).
    - a `trueloop.feed.BatchDataset`, whose `get_batch(indices, epoch)` gathers a whole batch at
      once, in this process.
    - `trueloop.Shards`: samples in Parquet, tar and Arrow files, on a disk or at a URL.
    - an iterable data set (only `__iter__`), read by this process or one worker. What it draws
      depends only on (seed, epoch, position in the stream).
    - an iterable data set with `iter_range(start, stop)`, which yields the samples at these
      positions of the epoch of `set_epoch`, and `__len__` (samples per epoch). It is called once
      for each batch, by any number of workers, so that any position is reached at once.
    - a torch `DataLoader`, which makes its own batches: only `device` may be given beside it. The
      same holds for any other iterable of whole batches with `state_dict` and `load_state_dict`.

    On several ranks `batch_size` counts the samples of all of them together, so that a batch is the
    same set of samples on any number of ranks, and each takes its part: of arrays, map-style data
    sets and ranges it reads no other samples. An iterable data set without `iter_range` is read
    whole by every rank, and must give the same stream on all. A `DataLoader` must be split by rank
    already (a `DistributedSampler`, or its own attributes `rank` and `num_replicas`), with as many
    batches on each; what it yields is this rank's part.

    The order is a function of (seed, epoch, position), so that starting in the middle costs
    nothing. Iterating over the feed itself is `epoch(0)` each time; a training loop writes
    `feed.epoch(epoch)`. `set_epoch(epoch)` of a data set or a loader's sampler, if there is one,
    is called with the epoch.

    The `state_dict` of an iterable data set (read in this process) or of a loader, if it has one
    that is plain data and tensors, is part of the feed's: it is taken with each batch. `iter()`
    after `load_state_dict()` must resume there; any other must start a new pass.

    Args:
        data: the samples, see above.
        batch_size: samples per batch, of all ranks together; None only for a `DataLoader`.
        shuffle: a new order in each epoch; False takes the samples as they come.
        weights: with `shuffle`, draw each sample in proportion to its weight, with replacement, and
            as many in an epoch as there are: numbers from 0 up, of shape (samples,); "balanced"
            draws each class equally often (of (inputs, targets), or a data set's `targets`).
        seed: of the order and of all that the samples and `transform` draw.
        workers: processes that fetch single samples; arrays need none, and none is started.
        drop_last: skip a last batch that is smaller than the others.
        device: where batches are put (a `torch.device` or "auto", "cpu", "cuda", "cuda:1",
            "mps"); None leaves them where they are.
        collate_fn: makes a batch of a list of samples; None is torch's `default_collate`.
        transform: `transform(batch, draws) -> batch`, called on each whole batch on its device;
            `draws(k)` and `draws.normal(k)` are random numbers of shape (B, k), see `Draws`. For
            arrays and map-style data sets.
        prefetch_factor: batches that each worker has ready.
        persistent_workers: keep the workers from epoch to epoch.
        fetch_ahead: for arrays and `BatchDataset`s, fetch each batch on a thread while the one
            before is used: the same batches. None does so where a batch takes long enough, by the
            first few of them; `get_batch` and `transform` must then depend only on their arguments.

    Raises:
        ConfigError: an argument has a value that cannot work, or does not fit the kind of data.
        DataError: the data is empty, its parts differ in length, or it is of no known kind; or,
            during an epoch, a sample cannot be fetched.
        DeviceError: the device does not exist.
    """

    STATE: ClassVar[Shape] = {
        "seed": COUNT,
        "batch_size": OneOf(None, COUNT),
        "samples": OneOf(None, COUNT),
        "shuffle": bool,
        "weights": Maybe(OneOf(None, str)),
        "drop_last": bool,
        "epoch": COUNT,
        "batch": COUNT,
        **{name: Maybe(shape) for name, shape in Sharded.STATE.items()},
        "place": Maybe(Cursor.STATE),
        **{name: Maybe(shape) for name, shape in ExternalLoader.STATE.items()},
        "others": Maybe(ListOf(ExternalLoader.OTHERS)),
    }
    """The form of the state that `load_state_dict` takes."""

    def __init__(
        self,
        data: Any,
        batch_size: int | None = None,
        *,
        shuffle: bool = False,
        weights: Any = None,
        seed: int = 0,
        workers: int = 0,
        drop_last: bool = False,
        device: str | torch.device | None = None,
        collate_fn: Collate | None = None,
        transform: Transform | None = None,
        prefetch_factor: int = 2,
        persistent_workers: bool = True,
        fetch_ahead: bool | None = None,
    ) -> None:
        if isinstance(data, Feed):
            raise DataError("the data is a Feed already: use it itself, or Feed(its data, ...)")
        kinds.check_kind(data)
        self.shuffle = _options.flag("shuffle", shuffle)
        self.seed = seeds.check_seed(seed)
        self.drop_last = _options.flag("drop_last", drop_last)
        self.device = None if device is None else devices.pick(device)
        if transform is not None:
            _options.function("transform", transform, "batch, draws", _TRANSFORM)
        self._transform = transform
        if collate_fn is not None:
            _options.function("collate_fn", collate_fn, "samples", _COLLATE)
        fetching = LoaderOptions(
            workers=_options.whole("workers", workers, 0),
            collate_fn=collate_fn,
            prefetch_factor=_options.whole("prefetch_factor", prefetch_factor, 1, 2),
            persistent_workers=_options.flag("persistent_workers", persistent_workers),
            pin_memory=self.device is not None and self.device.type == "cuda",
        )
        if isinstance(data, DataLoader) or (batch_size is None and is_loader(data)):
            check_options(
                data,
                fetching,
                batch_size=batch_size is not None,
                shuffle=self.shuffle,
                weights=weights is not None,
                seed=self.seed != 0,
                drop_last=self.drop_last,
                transform=transform is not None,
                fetch_ahead=fetch_ahead is not None,
            )
        else:
            _options.whole("batch_size", batch_size, 1, 32)
        self.batch_size = None if batch_size is None else int(batch_size)
        self._source = self._open(data, fetching)
        self._fetch_ahead = fetch_ahead_of(
            self._source, fetch_ahead, self.batch_size, transform is not None, self.device
        )
        self.samples = self._source.samples
        """Samples in the data; None where that cannot be known before the end."""
        self._weights = weights_of(weights, data, self.samples, shuffle=self.shuffle)
        self._length = self._count_batches()
        self._place = Cursor(0, 0)

    def _open(self, data: Any, fetching: LoaderOptions) -> Source:
        """The source that fits the kind of `data`, with the options checked against it."""
        if self.batch_size is None:
            return ExternalLoader(data)
        is_samples = fetching.collate_fn is not None and isinstance(data, list)
        if not is_samples and (is_arrays(data) or isinstance(data, BatchDataset)):
            if fetching.collate_fn is not None:
                raise ConfigError(
                    "collate_fn is for data sets of single samples, and this data is taken as "
                    "whole batches: use transform=..."
                )
            return Batched(data) if isinstance(data, BatchDataset) else Arrays(data)
        if isinstance(data, Shards):
            return Sharded(data, self.seed, fetching)
        kinds.check_data_set(data)
        if not kinds.is_iterable(data):
            return MapSource(data, self.seed, fetching)
        if self.shuffle:
            raise ConfigError(
                "shuffle=True needs samples that can be reached by index, and this data set only "
                "gives a stream: shuffle inside it, or give it __getitem__ and __len__"
            )
        if kinds.reads_ranges(data):
            return MapSource(data, self.seed, fetching)
        kinds.check_stream(fetching.workers, self._transform)
        assert self.batch_size is not None
        return IterableSource(data, self.batch_size, self.drop_last, self.seed, fetching)

    def _count_batches(self) -> int | None:
        """Batches per epoch; None if the number is known only when an epoch ends."""
        if isinstance(self._source, ExternalLoader):
            count = self._source.batches_per_epoch
        elif self.samples is None:
            return None
        else:
            assert self.batch_size is not None
            size = self.batch_size
            count = self.samples // size if self.drop_last else -(-self.samples // size)
        if self.samples == 0 or (count == 0 and self.samples is None):
            raise DataError("the data has no samples: check where it comes from")
        if count == 0:
            raise ConfigError(
                f"drop_last leaves no batch at all, since {self.samples} samples do not fill one: "
                "write a smaller batch_size or drop_last=False"
            )
        return count

    @property
    def has_length(self) -> bool:
        """Whether the number of batches per epoch is known before it begins."""
        return self._length is not None

    def __len__(self) -> int:
        """Batches per epoch. Raises `DataError` for data without a length."""
        if self._length is None:
            raise kinds.NoLengthError(
                "the number of batches is not known before the end of an epoch: give the iterable "
                "data set a __len__ (samples per epoch), or count updates instead of epochs"
            )
        return self._length

    def __bool__(self) -> bool:
        # Without this, `if val:` would ask a feed without a length for its length.
        return True

    def __repr__(self) -> str:
        counts = ((self.samples, "samples"), (self._length, "batches"))
        known = [f"{count:,} {what}" for count, what in counts if count is not None]
        order = "weighted" if self._weights else "shuffled" if self.shuffle else "in order"
        return reprs.described(self, *known, f"batch_size={self.batch_size}", order)

    def __iter__(self) -> Iterator[Any]:
        return self.epoch(0)

    def epoch(self, epoch: int, start: int = 0) -> Epoch:
        """The batches of one epoch.

        Arrays and map-style data sets do not read what is skipped. An iterable data set and a
        loader do, unless the feed has their own state at this place; a loader can repeat the last
        epoch it began, or one that a state remembers, and no other. A warning says what that costs
        after a resume.

        Args:
            epoch: from 0.
            start: the position of the first batch, which is that of a full pass.

        Returns:
            An iterator of batches.

        Raises:
            ConfigError: a number is out of range.
            RunError: a data set or loader does not load its own state.
        """
        _options.whole("epoch", epoch, 0)
        _options.whole("start", start, 0)
        if self._length is not None and start > self._length:
            raise ConfigError(
                f"start={start} is beyond the {self._length} batches of an epoch: write a start "
                f"from 0 to {self._length}"
            )
        place = self._place.begin(epoch, start)
        opened = self._opened(epoch, start, place, self._part())
        self._place = place
        return opened

    def sample_indices(self, epoch: int, batch: int, batches: int = 1) -> list[int] | None:
        """The indices of the samples in some batches, those of all ranks.

        Args:
            epoch: from 0.
            batch: the position of the first batch.
            batches: how many.

        Returns:
            The indices; None for a stream or a loader, which does not give its order away.
        """
        if self._length is None or self.samples is None or self.batch_size is None:
            return None
        if isinstance(self._source, (ExternalLoader, IterableSource)):
            return None
        _options.whole("epoch", epoch, 0)
        _options.whole("batch", batch, 0)
        last = min(batch + _options.whole("batches", batches), self._length)
        order = self._order(epoch)
        stop = min(last * self.batch_size, self.samples)
        found: list[int] = order.span(min(batch * self.batch_size, stop), stop).tolist()
        return found

    def whole_batches(self, epoch: int = 0) -> Epoch:
        """The batches of one epoch, whole: of each W of them, on W ranks, rank r takes number r.

        Each batch then gives what it gives in one process, bit for bit: `evaluate` is made of this.
        Where the last ranks are left without, they yield stand-ins. The feed's position stays.

        Args:
            epoch: from 0.

        Returns:
            An iterator of as many batches on every rank.
        """
        part = RankShare(*ranks.data_parallel(), whole_batches=True)
        _options.whole("epoch", epoch, 0)
        return self._opened(epoch, 0, Cursor(epoch, 0), part)

    def check_whole_batches(self) -> None:
        """Raise what `whole_batches` raises for data that cannot be given to the ranks."""
        part = RankShare(*ranks.data_parallel(), whole_batches=True)
        if isinstance(self._source, (ExternalLoader, IterableSource)):
            self._source.check_part(part)

    def _part(self) -> RankShare:
        """This rank's part of each batch."""
        part = RankShare(*ranks.data_parallel())
        if self.batch_size is not None and self.batch_size < part.count:
            raise ConfigError(
                f"batch_size={self.batch_size} counts the samples of all {part.count} ranks "
                f"together, and some would get none: write batch_size={part.count} or more"
            )
        return part

    def _opened(self, epoch: int, start: int, place: Cursor, part: RankShare) -> Epoch:
        """The pass from `start` on, of which `part` is handed out."""
        source, size = self._source, self.batch_size
        steps = None if self._length is None else part.steps(self._length)
        if isinstance(source, ExternalLoader):
            opened = source.opened(epoch, start, place, part)
            # The __len__ of a stream is often an estimate; its end says which batch is the last.
            length = None if source.is_stream else self._length
            return Epoch(transfer.to_device(opened, self.device), place, length)
        assert size is not None
        if isinstance(source, IterableSource):
            streamed = source.batches(epoch, start, place, part)
            return Epoch(transfer.to_device(streamed, self.device), place, None)
        assert self.samples is not None
        assert self._length is not None
        taken = portion(part, size, start * size, min(self._length * size, self.samples))
        batches = self._by_index(source, epoch, taken.stretches)
        return Epoch(batches, place, steps, ends_with_stand_in=taken.ends_with_stand_in)

    def _by_index(
        self, source: Arrays | Batched | MapSource, epoch: int, stretches: list[Stretch]
    ) -> Iterator[Any]:
        order = self._order(epoch)
        if isinstance(source, Arrays):
            batches = source.batches(order, stretches, self.device, self._fetch_ahead)
        elif isinstance(source, Batched):
            batches = source.batches(order, epoch, stretches, self.device, self._fetch_ahead)
        else:
            fetched = source.batches(order, epoch, stretches)
            batches = transfer.to_device(fetched, self.device)
        if self._transform is not None:
            draws = (
                Draws(self.seed, epoch, indices, self.device or source.device, keys)
                for indices, keys in order.keyed_batches(stretches)
            )
            batches = map(checked(self._transform), batches, draws)
        stays = stays_on_cpu(source, self.device)
        return self._fetch_ahead.over(batches) if stays else batches

    def _order(self, epoch: int) -> SampleOrder:
        if isinstance(self._source, Sharded):
            return self._source.order(self.seed, epoch, self.shuffle)
        if self._weights is not None:
            return WeightedOrder(self._weights, self.seed, epoch)
        assert self.samples is not None
        return SampleOrder(self.samples, self.seed, epoch, self.shuffle)

    def tokens_per_sample(self) -> int | None:
        """How many tokens (`StepRecord.tokens`) each sample has, by the first two batches.

        Returns:
            The number; None where they differ or have none, and for loaders and streams.
        """
        if isinstance(self._source, (ExternalLoader, IterableSource)):
            return None
        batches = self._opened(0, 0, Cursor(0, 0), RankShare(0, 1))
        found = set()
        for batch in itertools.islice(batches, 2):
            tokens, samples = batch_tokens(batch), batch_samples(batch)
            found.add(tokens // samples if samples and tokens % samples == 0 else 0)
        batches.close()
        return found.pop() or None if len(found) == 1 else None

    @property
    def position(self) -> tuple[int, int]:
        """Epoch and batch position that come next, as of the epoch begun (or loaded) last.

        After an epoch's last batch that is its end, (epoch, number of batches); once its iterator
        is exhausted, the beginning of the next epoch.
        """
        return self._place.epoch, self._place.batch

    def state_dict(self) -> dict[str, Any]:
        """Return the position and what the order depends on, the same on every rank: plain data.

        For an iterable data set or a loader, also its own state there, if it has one (a warning,
        once, if that cannot be stored); for a loader, also the generators that its epoch began with
        (plain data and tensors), and each rank must call it.
        """
        epoch, batch = self.position
        state = {**self._identity(), "epoch": epoch, "batch": batch}
        source = self._source
        if isinstance(source, (ExternalLoader, IterableSource)):
            if source.own.is_refused:
                source.own.is_refused = False
                warnings.warn(
                    f"{source.own.why}: a run resumed from here goes through the batches of "
                    "its epoch again",
                    RuntimeWarning,
                    stacklevel=2,
                )
            state["place"] = self._place.state() | {"why": source.own.why}
        if isinstance(source, ExternalLoader):
            state |= source.state()
            each = ranks.gathered(
                {name: state[name] for name in ExternalLoader.OTHERS}, "the other ranks' loaders"
            )
            state |= each[0]
            if len(each) > 1:
                state["others"] = each[1:]
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load a position: `feed.epoch(*feed.position)` continues from there.

        Args:
            state: what `state_dict` returned.

        Raises:
            RunError: it belongs to a different order: seed, sizes or options.
        """
        self.check_state(state)
        if isinstance(self._source, ExternalLoader):
            state = [state, *({**state, **each} for each in state.get("others", ()))][ranks.rank()]
            self._source.load(dict(state))
        self._place = Cursor.loaded(state["epoch"], state["batch"], state.get("place", {}))

    def check_state(self, state: Mapping[str, Any]) -> None:
        """Raise what `load_state_dict` raises, and change nothing.

        Args:
            state: what `state_dict` returned.

        Raises:
            RunError: it belongs to a different order: seed, sizes or options.
        """
        shape = self.STATE | (
            ExternalLoader.STATE if isinstance(self._source, ExternalLoader) else {}
        )
        if found := problem(dict(state), shape, "feed"):
            raise RunError(f"{found}: load a state that state_dict of a feed like this one gave")
        if isinstance(self._source, Sharded):
            self._source.check(state)
        for name, here in self._identity().items():
            if state.get(name) != here:
                raise RunError(
                    f"the saved feed has {name}={state[name]!r} and this one {name}={here!r}, so "
                    f"its batches would be others: continue with {name}={state[name]!r}"
                )
        if isinstance(self._source, ExternalLoader):
            self._source.check(state)
            count = 1 + len(state.get("others", ()))
            if count != ranks.world_size():
                raise RunError(
                    f"the saved loaders are those of {count} ranks, each with its own batches, and "
                    f"these of {ranks.world_size()}: continue with {count}, or train with "
                    "Feed(loader.dataset, batch_size=...), whose batches are those of all ranks"
                )

    def _identity(self) -> dict[str, Any]:
        return {
            "seed": self.seed,
            "batch_size": self.batch_size,
            "samples": self.samples,
            "shuffle": self.shuffle,
            "weights": None if self._weights is None else self._weights.digest,
            "drop_last": self.drop_last,
            **(self._source.identity() if isinstance(self._source, Sharded) else {}),
        }
