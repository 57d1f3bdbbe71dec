"""A loader of the user's own, which batches by itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from typing import Any, ClassVar

import torch
from torch.utils.data import BatchSampler, DataLoader, IterableDataset

from trueloop import ranks, seed as seeds
from trueloop.errors import ConfigError, DataError, RunError, UserError
from trueloop.feed.collate import reason_of
from trueloop.feed.cursor import Cursor, Generators, OwnState, set_generators, timed
from trueloop.feed.loader import LoaderOptions, has_len, set_epoch
from trueloop.feed.parts import RankShare
from trueloop.feed.split import Together, check_counts_once, check_lengths, check_split, split_of
from trueloop.feed.workers import iterate
from trueloop.shapes import COUNT, ListOf, OneOf, Shape

_END = object()
_GENERATORS = ListOf(seeds.CPU_STATE["torch"])


def check_options(loader: Any, fetching: LoaderOptions, **given: bool) -> None:
    """Raise `ConfigError` for options of `Feed` beside a loader, which has its own."""
    default = LoaderOptions(pin_memory=fetching.pin_memory)
    for name in ("workers", "collate_fn", "prefetch_factor", "persistent_workers"):
        given[name] = getattr(fetching, name) != getattr(default, name)
    if wrong := [name for name, is_given in given.items() if is_given]:
        raise ConfigError(
            f"a {type(loader).__name__} makes its own batches, so Feed takes no {', '.join(wrong)} "
            "with it: set it in the loader, or give Feed the data set instead, "
            "Feed(loader.dataset, ...)"
        )


def is_loader(data: Any) -> bool:
    """Whether `data` yields whole batches: a `DataLoader`, or any other iterable with a state."""
    if isinstance(data, DataLoader):
        return True
    if isinstance(data, (type, IterableDataset)) or hasattr(data, "__getitem__"):
        return False
    methods = ("__iter__", "state_dict", "load_state_dict")
    return not hasattr(data, "__next__") and all(hasattr(data, name) for name in methods)


class ExternalLoader:
    """A source of batches: a loader of the user's own.

    Its order and randomness come from the global generators or its own, as it made them. An epoch
    is begun again at a later batch by the loader's state there, if it has one, or else by replay
    from the generators' state at the epoch's beginning.
    """

    STATE: ClassVar[Shape] = {
        "beginning": OneOf(
            None,
            {"epoch": COUNT, "rng": seeds.CPU_STATE, "own": _GENERATORS, "draws_seed": bool},
        ),
        "generators": _GENERATORS,
    }
    """The form of the state that `load` takes."""
    OTHERS: ClassVar[Shape] = {**STATE, "place": Cursor.STATE}
    """The form of each rank's state, but for the first."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._dataset = getattr(loader, "dataset", None)
        self.is_stream = not isinstance(loader, DataLoader) or isinstance(
            self._dataset, IterableDataset
        )
        self.batches_per_epoch = len(loader) if has_len(loader) else None
        self.samples = self._count()
        self.own = self._own_state()
        self._generators = self._find_generators()
        self._beginning: dict[str, Any] | None = None
        """The generators as the last epoch found them, and whether its iterator draws a seed."""
        self._together = Together()
        self._there: list[torch.Tensor] | None = None
        """The loader's own generators at a place that was loaded and not yet begun from."""

    def _count(self) -> int | None:
        """Samples per epoch, of all ranks, where torch's own classes choose them; who knows
        otherwise."""
        if not isinstance(self._loader, DataLoader):
            return None
        counted, split = self._count_here(), split_of(self._loader)
        if counted is None or split is None or not ranks.is_distributed():
            return counted
        return counted * split.count

    def _count_here(self) -> int | None:
        chooser = self._loader.batch_sampler
        if isinstance(self._dataset, IterableDataset):
            counted: Any = self._dataset
        elif chooser is None:
            counted = self._loader.sampler
        elif type(chooser) is BatchSampler:
            counted = chooser.sampler
        else:
            return None
        return len(counted) if has_len(counted) else None

    def _own_state(self) -> OwnState:
        """The loader's; or its stream's, if that is read in this process."""
        own = OwnState(self._loader)
        if own.why is None or not isinstance(self._dataset, IterableDataset):
            return own
        inner = OwnState(self._dataset)
        if inner.why is not None:
            return own
        if not getattr(self._loader, "num_workers", 0):
            return inner
        name = type(self._dataset).__name__
        own.why = f"{own.why}, and {name} is read in workers, which cannot be asked for theirs"
        return own

    def state(self) -> dict[str, Any]:
        """A feed's state beside its place: plain data and tensors."""
        generators = self._states() if self._there is None else self._there
        return {"beginning": self._beginning, "generators": generators}

    def check(self, state: Mapping[str, Any]) -> None:
        """Raise `RunError` for a state of a loader with other generators."""
        beginning = state["beginning"]
        for states in (state["generators"], *([] if beginning is None else [beginning["own"]])):
            if len(states) != len(self._generators):
                raise RunError(
                    f"the saved loader had {len(states)} private generators and this one has "
                    f"{len(self._generators)}: build it as it was"
                )

    def load(self, state: dict[str, Any]) -> None:
        """Take up what `state` gave; `batches` then begins there."""
        self._beginning = state["beginning"]
        self._there = state["generators"]

    def check_part(self, part: RankShare) -> None:
        """Raise `ConfigError` unless the loader gives this rank its `part`: its own samples, and in
        an evaluation none that a second rank has too."""
        check_split(self._loader, part)
        if part.whole_batches:
            check_counts_once(self._loader)

    def opened(self, epoch: int, start: int, place: Cursor, part: RankShare) -> Iterator[Any]:
        """`batches`; on several ranks those of this rank, which every rank must open, and of which
        all give as many."""
        self.check_part(part)
        batches = self.batches(epoch, start, place)
        if part.count == 1 or check_lengths(self.batches_per_epoch):
            return batches
        return self._together.read(batches)

    def batches(self, epoch: int, start: int, place: Cursor) -> Iterator[Any]:
        """The batches from position `start` on; without the loader's own state at this place,
        those before are fetched and thrown away. Each is reported to `place`. Nothing is drawn
        before the first is asked for."""
        has_own = self.own.why is None and place.own is not None and (start > 0 or place.resumed)
        if has_own and place.over:
            # From the state after the last batch some loaders would end this epoch, others begin
            # the next.
            place.ended(place.own)
            return
        resumed, place.resumed = place.resumed, False
        there, self._there = self._there, None
        if has_own:
            come_to = self._rest_of_epoch if start else self._after_the_last
            batches = come_to(epoch, place.own, there)
        elif start:
            batches = self._replayed(epoch, start)
            if resumed:
                batches = timed(batches, place, self.own)
        else:
            self._set_states(there)
            self._begin(epoch)
            batches = self._pass()
        yield from self._reported(batches, place)

    def _rest_of_epoch(
        self, epoch: int, own: Any, there: list[torch.Tensor] | None
    ) -> Iterator[Any]:
        """The rest of an epoch, inside which the loader's state was `own`."""
        with seeds.rng_preserved():
            self._set_epoch(epoch)  # first, since it may send the loader to the epoch's start
            self.own.give(own)
        with self._seeded_apart():
            with seeds.rng_preserved():  # it may fetch its way forward
                batches = iterate(self._loader)
            self._set_states(there)  # after: a loader that shuffles draws its order again
            first = next(batches, _END)
        yield from _joined(first, batches)

    def _after_the_last(
        self, epoch: int, own: Any, there: list[torch.Tensor] | None
    ) -> Iterator[Any]:
        """An epoch before which, at the end of the last one, the loader's state was `own`."""
        with seeds.rng_preserved():
            self.own.give(own)
            if isinstance(self._loader, DataLoader) and hasattr(self._loader, "load_state_dict"):
                # It may draw the last epoch's order again before it begins this one: let it, and
                # begin with the generators as they were.
                iterate(self._loader)
        self._set_states(there)
        self._begin(epoch)  # only now, since `own` may hold the number of the last epoch
        batches = self._pass()
        first = next(batches, _END)
        if first is _END:  # that was the rest of the last epoch
            self._set_beginning()
            batches = self._pass()
            first = next(batches, _END)
        yield from _joined(first, batches)

    def _replayed(self, epoch: int, start: int) -> Iterator[Any]:
        if self._beginning is None or self._beginning["epoch"] != epoch:
            self._begin(epoch)
            yield from _skip(self._pass(), start)
            return
        with seeds.rng_preserved():
            self._set_epoch(epoch)
            self._set_beginning()
            batches = _skip(self._pass(), start)
        yield from batches

    def _begin(self, epoch: int) -> None:
        """Remember what the epoch begins with."""
        lives_on = getattr(self._loader, "persistent_workers", False)
        self._set_epoch(epoch)
        self._beginning = {
            "epoch": epoch,
            "rng": Generators().plain(),
            "own": self._states(),
            # Torch draws one for each iterator, and has but one if its workers live on.
            "draws_seed": not lives_on or self._beginning is None,
        }

    def _set_beginning(self) -> None:
        assert self._beginning is not None
        set_generators(self._beginning["rng"])
        self._set_states(self._beginning["own"])

    def _pass(self) -> Iterator[Any]:
        """The batches from the beginning of the epoch that was begun last."""
        assert self._beginning is not None
        with nullcontext() if self._beginning["draws_seed"] else self._seeded_apart():
            batches = iterate(self._loader)
            first = next(batches, _END)
        yield from _joined(first, batches)

    @contextmanager
    def _seeded_apart(self) -> Iterator[None]:
        """Let torch's loader draw its iterator's seed from a copy of its generator: a run that was
        not stopped draws none here. A loader whose `__iter__` is a generator function makes that
        iterator only when it is asked for the first batch."""
        if not isinstance(self._loader, DataLoader):
            yield
            return
        kept = self._loader.generator
        copy = torch.Generator()
        copy.set_state((kept or torch.default_generator).get_state())
        self._loader.generator = copy
        try:
            yield
        finally:
            self._loader.generator = kept

    def _reported(self, batches: Iterator[Any], place: Cursor) -> Iterator[Any]:
        """`batches`; those that had been fetched when the place was saved, with the generators as
        they were then: what trained in between has drawn on them since."""
        ahead = deque(place.ahead)
        while True:
            with _generators_at(ahead.popleft()) if ahead else nullcontext():
                before = Generators()
                batch = self._next(batches, place)
            if batch is _END:
                place.ended(self.own.take())
                return
            place.fetched(self.own.take(), before)
            yield batch

    def _next(self, batches: Iterator[Any], place: Cursor) -> Any:
        name = type(self._loader).__name__
        try:
            batch = next(batches, _END)
        except UserError:
            raise
        except Exception as error:
            raise DataError(
                f"the {name} cannot make its next batch in epoch {place.epoch + 1}, "
                f"{reason_of(error)}: fix the data set, or what the loader was given"
            ) from error
        if batch is None:
            raise DataError(
                f"the {name} gave None as a batch in epoch {place.epoch + 1}: end its "
                "collate_fn with `return batch`"
            )
        return batch

    def _set_epoch(self, epoch: int) -> None:
        names = ("dataset", "sampler", "batch_sampler")
        parts = (self._loader, *(getattr(self._loader, name, None) for name in names))
        for part in {id(part): part for part in parts}.values():
            set_epoch(part, epoch)

    def _find_generators(self) -> list[torch.Generator]:
        """The generators that the loader was given."""
        loader = self._loader
        sampler = getattr(loader, "sampler", None)
        inner = getattr(getattr(loader, "batch_sampler", None), "sampler", sampler)
        found = (getattr(owner, "generator", None) for owner in (loader, inner))
        return list({id(one): one for one in found if isinstance(one, torch.Generator)}.values())

    def _states(self) -> list[torch.Tensor]:
        return [generator.get_state() for generator in self._generators]

    def _set_states(self, states: list[torch.Tensor] | None) -> None:
        if states is None:
            return
        for generator, state in zip(self._generators, states, strict=True):
            generator.set_state(state)


@contextmanager
def _generators_at(state: dict[str, Any]) -> Iterator[None]:
    with seeds.rng_preserved():
        set_generators(state)
        yield


def _joined(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    if first is not _END:
        yield first
        yield from rest


def _skip(batches: Iterator[Any], count: int) -> Iterator[Any]:
    for _ in range(count):
        next(batches, None)
    return batches
