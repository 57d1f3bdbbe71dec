"""Data sets and loaders: the same samples for any workers, and this process left untouched."""

from __future__ import annotations

import gc
import multiprocessing
import os
import random
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DataLoader,
    Dataset,
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    TensorDataset,
)

from bits import same
from trueloop import seed as seeds
from trueloop.errors import DataError
from trueloop.feed import Feed
from trueloop.feed.order import SampleOrder


class Noisy(Dataset[Any]):
    """Its index, and a draw from each of the three generators."""

    def __init__(self, size: int = 23) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[int, torch.Tensor]:
        draws = [torch.rand(()).item(), np.random.rand(), random.random()]
        return index, torch.tensor(draws, dtype=torch.float64)


class Stream(IterableDataset[Any]):
    """A stream in an order that it draws itself, with noise on each sample."""

    def __init__(self, size: int = 23) -> None:
        self.size = size

    def __iter__(self) -> Iterator[Any]:
        for index in torch.randperm(self.size).tolist():
            yield index, np.random.rand() + random.random()


class Told:
    """Each sample is the epoch that the data set was told, and the process it is in."""

    epoch = -1

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __len__(self) -> int:
        return 6


class ToldByIndex(Told):
    def __getitem__(self, index: int) -> tuple[int, int]:
        return self.epoch, os.getpid()


class ToldInSequence(Told):
    def __iter__(self) -> Iterator[tuple[int, int]]:
        for _ in range(len(self)):
            yield self.epoch, os.getpid()


def generators() -> tuple[Any, ...]:
    state = seeds.rng_state()
    return state["torch"].tolist(), state["numpy"], state["random"]


# Map-style


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_samples_come_in_the_order_of_the_function(workers: int) -> None:
    feed = Feed(Noisy(), 5, shuffle=True, seed=4, workers=workers)
    for epoch in (0, 3):
        indices = torch.cat([index for index, _ in feed.epoch(epoch)])
        assert indices.tolist() == SampleOrder(23, 4, epoch).span(0, 23).tolist()


def test_randomness_is_a_function_of_seed_epoch_and_index() -> None:
    epochs = {}
    for workers in (0, 1, 4):
        feed = Feed(Noisy(), 5, shuffle=True, seed=4, workers=workers)
        epochs[workers] = [list(feed.epoch(epoch)) for epoch in (0, 1)]
        torch.manual_seed(workers)  # no matter
    for epoch in (0, 1):
        assert same(epochs[0][epoch], epochs[1][epoch])
        assert same(epochs[0][epoch], epochs[4][epoch])
    # The same sample in another order and another batch size draws the same; in another epoch not.
    by_index = {
        int(i): row for index, rows in epochs[0][1] for i, row in zip(index, rows, strict=True)
    }
    for index, rows in Feed(Noisy(), 7, seed=4).epoch(1):
        for i, row in zip(index, rows, strict=True):
            assert torch.equal(by_index[int(i)], row)
    values = torch.cat([rows.flatten() for epoch in epochs[0] for _, rows in epoch])
    assert len(values.unique()) == 2 * 23 * 3
    other = torch.cat([rows.flatten() for _, rows in Feed(Noisy(), 7, seed=5).epoch(1)])
    assert len(torch.cat([values, other]).unique()) == 3 * 23 * 3


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("data", [Noisy, Stream])
def test_the_generators_of_this_process_are_untouched(data: type, workers: int) -> None:
    before = generators()
    feed = Feed(data(), 5, seed=4, workers=min(workers, 1) if data is Stream else workers)
    list(feed.epoch(0))
    next(feed.epoch(1, 2))
    assert generators() == before


@pytest.mark.parametrize("workers", [0, 2])
def test_starting_in_the_middle_gives_the_same_batches(workers: int) -> None:
    feed = Feed(Noisy(), 5, shuffle=True, workers=workers)
    whole = list(feed.epoch(2))
    for start in range(6):
        assert same(list(feed.epoch(2, start)), whole[start:])


def test_skipped_samples_are_not_fetched() -> None:
    class Counting(Noisy):
        fetched = 0

        def __getitem__(self, index: int) -> Any:
            Counting.fetched += 1
            return super().__getitem__(index)

    list(Feed(Counting(), 5, shuffle=True).epoch(0, 4))
    assert Counting.fetched == 3


@pytest.mark.parametrize("persistent", [True, False])
def test_workers_live_on_if_they_are_to(persistent: bool) -> None:
    feed = Feed(ToldByIndex(), 1, workers=2, persistent_workers=persistent)
    processes = [{int(pid) for _, pid in feed.epoch(epoch)} for epoch in range(3)]
    assert os.getpid() not in processes[0]
    assert len(processes[0]) == 2
    assert (processes[0] == processes[1] == processes[2]) is persistent


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("data", [ToldByIndex, ToldInSequence])
def test_the_data_set_is_told_the_epoch(data: type, workers: int) -> None:
    feed = Feed(data(), 2, workers=workers)
    for epoch in (0, 1, 5, 0):
        assert {int(told) for batch, _ in feed.epoch(epoch) for told in batch} == {epoch}


@pytest.mark.parametrize("workers", [0, 1])
def test_overlapping_epochs_are_each_told_their_own(workers: int) -> None:
    feed = Feed(ToldByIndex(), 2, workers=workers)
    pairs = [
        (one[0].tolist(), two[0].tolist())
        for one, two in zip(feed.epoch(3), feed.epoch(4), strict=True)
    ]
    assert pairs == [([3, 3], [4, 4])] * 3


@pytest.mark.parametrize("workers", [0, 2])
def test_epochs_may_overlap_and_be_abandoned(workers: int) -> None:
    feed = Feed(Noisy(), 5, shuffle=True, workers=workers)
    expected = [list(Feed(Noisy(), 5, shuffle=True).epoch(epoch)) for epoch in (0, 1)]
    pairs = list(zip(feed.epoch(0), feed.epoch(1), strict=True))
    assert same([one for one, _ in pairs], expected[0])
    assert same([two for _, two in pairs], expected[1])
    for _ in feed.epoch(0):
        break
    assert same(list(feed.epoch(1)), expected[1])
    closed = feed.epoch(0)
    next(closed)
    closed.close()
    assert list(closed) == []
    assert same(list(feed.epoch(1)), expected[1])


def test_workers_stop_at_once_when_the_feed_is_in_a_circle() -> None:
    # Collected as garbage, torch's loader waits five seconds for each of its workers.
    others = set(multiprocessing.active_children())
    circle: list[Any] = [Feed(ToldByIndex(), 1, workers=2)]
    circle.append(circle)
    list(circle[0])
    del circle
    began = time.perf_counter()
    gc.collect()
    assert time.perf_counter() - began < 4
    assert set(multiprocessing.active_children()) <= others


class Broken(Noisy):
    def __getitem__(self, index: int) -> Any:
        if index == 17:
            raise OSError("truncated\nfile")
        return super().__getitem__(index)


class BrokenStream(Stream):
    def __iter__(self) -> Iterator[Any]:
        for index in range(self.size):
            if index == 17:
                raise OSError("truncated\nfile")
            yield index


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("data", [Broken, BrokenStream])
def test_a_failing_sample_is_named(data: type, workers: int) -> None:
    feed = Feed(data(), 5, workers=workers, drop_last=True)
    for _ in range(2):  # also once the workers have met it
        epoch = feed.epoch(3)
        with pytest.raises(DataError) as caught:
            list(epoch)
        message = str(caught.value)
        assert "sample 17 of epoch 4" in message
        assert "OSError: truncated file" in message
        assert "\n" not in message
        cause = caught.value.__cause__
        assert isinstance(cause, RuntimeError if workers else OSError)
        assert "truncated" in str(cause)


@pytest.mark.parametrize("workers", [0, 1])
def test_collate_fn_makes_the_batch(workers: int) -> None:
    def lengths(samples: list[Any]) -> list[Any]:
        return [len(samples), [index for index, _ in samples]]

    batches = list(Feed(Noisy(5), 3, collate_fn=lengths, workers=workers))
    assert batches == [[3, [0, 1, 2]], [2, [3, 4]]]


def test_a_list_with_a_collate_fn_is_a_list_of_samples() -> None:
    samples = [(torch.full((n,), n), torch.tensor([n])) for n in range(1, 6)]

    def padded(pairs: list[Any]) -> Any:
        rows, sizes = zip(*pairs, strict=True)
        return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True), torch.cat(sizes)

    (first, sizes), (second, _), (third, _) = Feed(samples, 2, collate_fn=padded)
    assert first.tolist() == [[1, 0], [2, 2]]
    assert sizes.tolist() == [1, 2]
    assert second.tolist() == [[3, 3, 3, 0], [4, 4, 4, 4]]
    assert third.tolist() == [[5] * 5]


@pytest.mark.parametrize("workers", [0, 1])
def test_transform_draws_by_sample(workers: int) -> None:
    def jitter(batch: Any, draws: Any) -> Any:
        return [*batch, torch.cat([draws(2), draws.normal(1)], dim=1)]

    shuffled = Feed(Noisy(), 5, shuffle=True, workers=workers, transform=jitter)
    by_index = {
        int(i): row
        for index, _, rows in shuffled.epoch(1)
        for i, row in zip(index, rows, strict=True)
    }
    arrays = Feed([torch.arange(23)], 7, transform=jitter)
    for index, rows in arrays.epoch(1):
        for i, row in zip(index, rows, strict=True):
            assert torch.equal(row, by_index[int(i)])


def test_a_huge_data_set_starts_at_once() -> None:
    feed = Feed(Noisy(10**15), 4, shuffle=True)
    index, _ = next(feed.epoch(0, 10**14))
    assert len(set(index.tolist())) == 4


# Iterable


@pytest.mark.parametrize("workers", [0, 1])
def test_a_stream_repeats_itself(workers: int) -> None:
    plain = [list(Feed(Stream(), 5, seed=1).epoch(epoch)) for epoch in (0, 1)]
    feed = Feed(Stream(), 5, seed=1, workers=workers)
    assert same(list(feed.epoch(0)), plain[0])
    assert same(list(feed.epoch(1)), plain[1])
    assert not same(plain[0], plain[1])
    assert sorted(torch.cat([index for index, _ in plain[0]]).tolist()) == list(range(23))
    for start in (1, 3, 4, 5):
        assert same(list(feed.epoch(0, start)), plain[0][start:])
    dropping = Feed(Stream(), 5, seed=1, workers=workers, drop_last=True)
    assert same(list(dropping.epoch(1)), plain[1][:4])


def test_any_object_that_starts_afresh_is_a_stream() -> None:
    class Plain:
        def __iter__(self) -> Iterator[int]:
            return iter(range(5))

    feed = Feed(Plain(), 2)
    for _ in range(2):
        assert [batch.tolist() for batch in feed] == [[0, 1], [2, 3], [4]]


# A DataLoader of the user's own


def tensors(size: int = 23) -> TensorDataset:
    return TensorDataset(torch.arange(size), torch.arange(size) * 2)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_data_loader_is_taken_as_it_is(workers: int) -> None:
    loader = DataLoader(Noisy(), batch_size=5, shuffle=True, num_workers=workers)
    feed = Feed(loader)
    assert (len(feed), feed.samples) == (5, 23)
    torch.manual_seed(3)
    expected = [list(loader), list(loader)]
    torch.manual_seed(3)
    for epoch, plain in enumerate(expected):
        for (index, draws), (its_index, its_draws) in zip(feed.epoch(epoch), plain, strict=True):
            assert torch.equal(index, its_index)
            assert torch.equal(draws[:, 0], its_draws[:, 0])  # torch's; the others go on


@pytest.mark.parametrize("own", [False, True])
def test_a_data_loaders_epoch_is_replayed(own: bool) -> None:
    generator = torch.Generator().manual_seed(8) if own else None
    loader = DataLoader(tensors(), batch_size=5, shuffle=True, generator=generator)
    feed = Feed(loader)
    list(feed.epoch(0))
    whole = list(feed.epoch(1))
    state = feed.state_dict()
    torch.rand(10)  # the training goes on drawing
    before = generators()
    assert same(list(feed.epoch(1, 2)), whole[2:])
    assert same(list(feed.epoch(1, 4)), whole[4:])
    if own:
        assert generators() == before
    other_generator = torch.Generator() if own else None
    other = Feed(DataLoader(tensors(), batch_size=5, shuffle=True, generator=other_generator))
    other.load_state_dict(state)
    assert same(list(other.epoch(1, 3)), whole[3:])


def test_a_data_loaders_sampler_is_told_the_epoch() -> None:
    sampler = DistributedSampler(tensors(), num_replicas=2, rank=0, shuffle=True, seed=1)
    feed = Feed(DataLoader(tensors(), batch_size=4, sampler=sampler))
    assert feed.samples == 12
    first, second, again = (list(feed.epoch(epoch)) for epoch in (0, 1, 0))
    assert same(first, again)
    assert not same(first, second)


def test_counts_of_a_data_loader() -> None:
    sampler = RandomSampler(tensors(), num_samples=7)
    assert Feed(DataLoader(tensors(), batch_size=4, sampler=sampler)).samples == 7
    assert Feed(DataLoader(tensors(), batch_size=None)).samples == 23
    batches = Feed(DataLoader(tensors(), batch_sampler=[[0, 1], [5]]))
    assert (batches.samples, len(batches)) == (None, 2)
    stream = Feed(DataLoader(Stream(), batch_size=4))
    assert (stream.samples, stream.has_length) == (None, False)
    assert len(list(stream)) == 6
