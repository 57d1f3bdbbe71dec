"""Torch's own loaders made to shuffle as a `Feed` does, to compare loops over the same batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from weakref import WeakKeyDictionary

import torch


def draw_as_feed(patch: Any) -> None:
    """Let torch's loaders draw what a `Feed` with seed 0 draws: the order of an epoch's samples and
    what augments a sample are functions of its place. What remains to differ is the loop.

    `patch` is a `pytest.MonkeyPatch`, which takes it back.
    """
    import torch.utils.data._utils.fetch as fetching
    from torch.utils.data import DataLoader, RandomSampler

    from trueloop import Feed, seed

    epochs: WeakKeyDictionary[RandomSampler, int] = WeakKeyDictionary()
    own_iter, now = DataLoader.__iter__, [0]

    def shuffled(self: RandomSampler) -> Iterator[int]:
        now[0] = epochs.get(self, 0)
        epochs[self] = now[0] + 1
        size = len(self.data_source)  # type: ignore[arg-type]
        yield from Feed(torch.arange(size), size, shuffle=True).sample_indices(now[0], 0) or []

    def iterate(self: DataLoader[Any]) -> Any:
        with seed.rng_preserved():  # the seed of its workers
            return own_iter(self)

    def fetch(self: Any, indices: list[int]) -> Any:
        samples = []
        with seed.rng_preserved():
            for index in indices:
                seed.seed_sample(0, now[0], index)
                samples.append(self.dataset[index])
        return self.collate_fn(samples)

    patch.setattr(RandomSampler, "__iter__", shuffled)
    patch.setattr(DataLoader, "__iter__", iterate)
    patch.setattr(fetching._MapDatasetFetcher, "fetch", fetch)
