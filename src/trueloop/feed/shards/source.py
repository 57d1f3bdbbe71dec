"""Shards as a source of `Feed`'s batches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar

from torch.utils.data import DataLoader, Dataset

from trueloop import seed as seeds
from trueloop.errors import RunError, UserError
from trueloop.feed.collate import Collator, FetchedSamples, failure
from trueloop.feed.loader import LoaderOptions, MapSource, not_fetched
from trueloop.feed.order import SampleOrder
from trueloop.feed.parts import Stretch
from trueloop.feed.shards.dataset import Shards
from trueloop.feed.windows import WindowOrder
from trueloop.shapes import COUNT, Shape

Key = tuple[int, list[int], tuple[list[int], list[int]] | None]
"""Epoch, sample indices of a batch, and, at the beginning of a window, its blocks and those of the
window after it."""


class _Ready:
    """A batch that needs no collating."""

    def __init__(self, batch: Any) -> None:
        self.batch = batch


class _ReadyCollator(Collator):
    def __call__(self, samples: Any) -> Any:
        return samples.batch if isinstance(samples, _Ready) else super().__call__(samples)


class _Gathered(Dataset[Any]):
    """The samples of one batch at a time; where the user's functions make them, with generators
    that are seeded for each."""

    def __init__(self, shards: Shards, seed: int, is_collated: bool) -> None:
        self.shards = shards
        self._seed = seed
        self._is_collated = is_collated

    def __getitems__(self, key: Key) -> Any:
        epoch, indices, window = key
        is_joined = not self._is_collated and not self.shards.draws
        try:
            found = self.shards.get_batch(indices) if is_joined else None
            samples = self._samples(epoch, indices) if found is None else _Ready(found)
            # After the first batch of the window, which has no need of all its blocks.
            if window is not None:
                self.shards.begin_window(*window, joined=found is not None)
        except UserError as error:
            return failure(str(error), error)
        except Exception as error:
            return not_fetched(indices[0], epoch, error)
        return samples if isinstance(samples, _Ready) else FetchedSamples(samples, indices)

    def _samples(self, epoch: int, indices: Sequence[int]) -> list[Any]:
        if not self.shards.draws:
            return self.shards.__getitems__(indices)
        self.shards.fetch(indices)
        samples = []
        for index in indices:
            seeds.seed_sample(self._seed, epoch, index)
            samples.append(self.shards[index])
        return samples


class Sharded(MapSource):
    """A source of batches: `Shards`, whose order is that of windows of blocks."""

    STATE: ClassVar[Shape] = {"shards": str, "window": COUNT}
    """The source's part of a feed's state."""

    def __init__(self, shards: Shards, seed: int, fetching: LoaderOptions) -> None:
        super().__init__(shards, seed, fetching)
        self._shards = shards
        self._gathered = _Gathered(shards, seed, fetching.collate_fn is not None)

    def order(self, seed: int, epoch: int, shuffle: bool) -> WindowOrder:
        """The order of one epoch."""
        return self._shards.order(seed, epoch, shuffle)

    def identity(self) -> dict[str, Any]:
        """The properties that the order and the samples depend on: names, sizes and blocks of the
        shards as one word, and the window."""
        return {"shards": self._shards.digest(), "window": self._shards.window}

    def check(self, state: Mapping[str, Any]) -> None:
        """Raise `RunError` for the state of a feed of different shards."""
        if state.get("shards") != self.identity()["shards"]:
            raise RunError(
                "the saved feed read different shards (their names, their sizes or the samples in "
                "them), so its batches would be others: put those back, or start a new run"
            )

    def _loader_of(self, keys: Any) -> DataLoader[Any]:
        return self._fetching.loader(self._gathered, _ReadyCollator, batch_sampler=keys)

    def _keys(self, order: SampleOrder, epoch: int, stretches: Sequence[Stretch]) -> Iterator[Key]:
        """Names each batch; with the first batches of a window, one for each worker, its blocks and
        those of the window after it."""
        assert isinstance(order, WindowOrder)
        batches = order.batches(stretches)
        positions = (
            stretch.first + number * stretch.stride
            for stretch in stretches
            for number in range(stretch.count)
        )
        window, started = -1, 0
        for position, indices in zip(positions, batches, strict=True):
            here = order.window_at(position)
            started = 0 if here != window else started + 1
            window = here
            named = None
            if started < max(self._fetching.workers, 1):
                named = (order.blocks_of(here).tolist(), order.blocks_of(here + 1).tolist())
            yield epoch, indices.tolist(), named
