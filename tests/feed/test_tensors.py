"""Arrays: whole batches in the data's structure, private, right to the last sample."""

from __future__ import annotations

from collections import namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch.utils.data import Subset, TensorDataset, random_split

from trueloop.errors import ConfigError, DataError
from trueloop.feed import Feed
from trueloop.feed.order import SampleOrder

Pair = namedtuple("Pair", ["left", "right"])


def order(size: int, seed: int, epoch: int, shuffle: bool = True) -> torch.Tensor:
    return torch.from_numpy(SampleOrder(size, seed, epoch, shuffle).span(0, size).copy())


@settings(max_examples=60, deadline=None)
@given(
    size=st.integers(1, 300),
    batch_size=st.integers(1, 80),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
    width=st.sampled_from([1, 3, 40_000]),
    start=st.floats(0, 1),
)
def test_batches_are_the_data_in_order(
    size: int, batch_size: int, shuffle: bool, drop_last: bool, width: int, start: float
) -> None:
    if drop_last and size < batch_size:
        return
    data = torch.arange(size)[:, None].expand(size, width)
    feed = Feed((data, np.arange(size)), batch_size, shuffle=shuffle, drop_last=drop_last, seed=9)
    batches = list(feed.epoch(2))
    assert len(batches) == len(feed)
    assert all(len(inputs) == batch_size for inputs, _ in batches[:-1])
    used = size // batch_size * batch_size if drop_last else size
    expected = order(size, 9, 2, shuffle)[:used]
    assert torch.equal(torch.cat([targets for _, targets in batches]), expected)
    assert all(
        torch.equal(inputs, targets[:, None].expand(-1, width)) for inputs, targets in batches
    )
    first = round(start * len(feed))
    tail = list(feed.epoch(2, first))
    assert len(tail) == len(batches) - first
    for (one, _), (two, _) in zip(tail, batches[first:], strict=True):
        assert torch.equal(one, two)


def test_batches_have_the_structure_of_the_data() -> None:
    x, y = torch.arange(10.0), np.arange(10)
    cases: list[tuple[Any, Any]] = [
        (x, lambda i: x[i]),
        ((x,), lambda i: (x[i],)),
        ([x, y], lambda i: [x[i], torch.from_numpy(y)[i]]),
        ({"x": x, "y": y}, lambda i: {"x": x[i], "y": torch.from_numpy(y)[i]}),
        (((x, [x]), y), lambda i: ((x[i], [x[i]]), torch.from_numpy(y)[i])),
        (({"x": x}, y), lambda i: ({"x": x[i]}, torch.from_numpy(y)[i])),
        (Pair(x, y), lambda i: Pair(x[i], torch.from_numpy(y)[i])),
    ]
    for data, expected in cases:
        batches = list(Feed(data, 4, shuffle=True, seed=1).epoch(0))
        for batch, indices in zip(batches, order(10, 1, 0).split(4), strict=True):
            torch.testing.assert_close(batch, expected(indices), rtol=0, atol=0)
            assert type(batch) is type(data)


@pytest.mark.parametrize(
    "dtype",
    ["bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16",
     "float32", "float64", "complex64", ">f4", ">i2"],
)  # fmt: skip
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_number_type(dtype: str, shuffle: bool) -> None:
    array = (np.arange(24).reshape(12, 2) % 2 * 7).astype(dtype)
    rows = SampleOrder(12, 0, 0, shuffle).span(0, 12)
    batches = list(Feed(array, 5, shuffle=shuffle).epoch(0))
    assert np.array_equal(np.concatenate([batch.numpy() for batch in batches]), array[rows])


@pytest.mark.parametrize("shuffle", [False, True])
def test_awkward_memory_layouts(shuffle: bool) -> None:
    base = np.arange(60.0).reshape(12, 5)
    frozen = base.copy()
    frozen.flags.writeable = False
    record = np.zeros(12, dtype=[("flag", "i1"), ("value", "f4")])["value"]
    for array in (base[::-1], base[:, ::2], base.T[:, :5], frozen, record):
        rows = SampleOrder(len(array), 0, 0, shuffle).span(0, len(array))
        batches = list(Feed(array, 5, shuffle=shuffle).epoch(0))
        assert np.array_equal(np.concatenate([batch.numpy() for batch in batches]), array[rows])


@pytest.mark.parametrize("shuffle", [False, True])
@pytest.mark.parametrize("kind", ["tensor", "array", "memmap"])
def test_writing_into_a_batch_changes_nothing_else(
    shuffle: bool, kind: str, tmp_path: Path
) -> None:
    data: Any = torch.arange(20.0)
    if kind == "array":
        data = data.numpy().copy()
    elif kind == "memmap":
        data.numpy().tofile(tmp_path / "data")
        data = np.memmap(tmp_path / "data", dtype=np.float32, mode="r+")
    feed = Feed(data, 6, shuffle=shuffle)
    before = list(feed.epoch(0))
    epoch = feed.epoch(0)
    kept = next(epoch)
    weight = torch.ones(6, requires_grad=True)
    loss = (kept * weight).sum()
    for batch in epoch:
        batch.zero_()  # torch's own split would make autograd refuse the backward below
    loss.backward()
    assert torch.equal(weight.grad, kept)
    assert torch.equal(torch.as_tensor(np.asarray(data)), torch.arange(20.0))
    assert torch.equal(kept, before[0])


@pytest.mark.parametrize("shuffle", [False, True])
def test_a_memory_map_is_read_only_where_needed(shuffle: bool, tmp_path: Path) -> None:
    # 400 GB, nearly all of it a hole in the file.
    array = np.memmap(tmp_path / "huge", dtype=np.float32, mode="w+", shape=(10**8, 1000))
    feed = Feed(array, 4, shuffle=shuffle, seed=3)
    row = int(SampleOrder(10**8, 3, 1, shuffle).span(8, 9)[0])
    array[row] = 5
    batch = next(feed.epoch(1, 2))
    assert batch.shape == (4, 1000)
    assert batch[0].eq(5).all()
    assert batch[1:].eq(0).all()


def test_tensor_datasets_are_taken_as_arrays() -> None:
    x, y = torch.arange(30.0), torch.arange(30)
    dataset = TensorDataset(x, y)
    whole = list(Feed(dataset, 8, shuffle=True))
    assert all(
        torch.equal(one, two)
        for got, plain in zip(whole, Feed((x, y), 8, shuffle=True), strict=True)
        for one, two in zip(got, plain, strict=True)
    )
    part, _ = random_split(dataset, [20, 10])
    nested = Subset(part, [3, 1, 19])
    for subset in (part, nested):
        feed = Feed(subset, 8, shuffle=True, seed=2)
        assert feed.samples == len(subset)
        targets = torch.cat([batch[1] for batch in feed.epoch(1)])
        expected = [int(subset[i][1]) for i in order(len(subset), 2, 1).tolist()]
        assert targets.tolist() == expected
        plain = torch.cat([batch[1] for batch in Feed(subset, 2)])
        assert plain.tolist() == [int(target) for _, target in subset]


def test_a_tensor_dataset_with_its_own_getitem_keeps_it() -> None:
    class Doubled(TensorDataset):
        def __getitem__(self, index: int) -> torch.Tensor:
            return 2 * self.tensors[0][index]

    assert torch.cat(list(Feed(Doubled(torch.arange(5)), 2))).tolist() == [0, 2, 4, 6, 8]


def test_a_list_of_samples_is_a_data_set() -> None:
    samples = [(torch.full((3,), float(i)), i) for i in range(5)]
    inputs, targets = next(iter(Feed(samples, 5)))
    assert inputs.shape == (5, 3)
    assert targets.tolist() == [0, 1, 2, 3, 4]
    assert next(iter(Feed([1, 2, 3], 3))).tolist() == [1, 2, 3]
    assert next(iter(Feed([(torch.tensor(1), torch.tensor(2))], 1)))[1].tolist() == [2]


def test_batches_carry_no_gradient() -> None:
    assert not next(iter(Feed(torch.ones(4, requires_grad=True), 2))).requires_grad


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ((torch.ones(3), np.ones(4)), r"data\[0\] has 3 samples, data\[1\] has 4"),
        (
            {"x": torch.ones(3), "y": [torch.ones(2)]},
            r"data\['x'\] has 3 samples, data\['y'\]\[0\] has 2",
        ),
        (torch.ones(0, 3), "no samples"),
        (torch.tensor(1.0), "single number"),
        ((), "empty tuple"),
        ({}, "empty dict"),
        ([], "no samples"),
        ((torch.ones(3), "text"), "str, not a tensor"),
        (np.array(["a", "b"]), "dtype <U1"),
        (np.array([None, 1]), "dtype object"),
        (torch.eye(3).to_sparse(), "to_dense"),
    ],
)
def test_unfit_data_is_refused(data: Any, words: str) -> None:
    with pytest.raises(DataError, match=words) as caught:
        Feed(data, 2)
    assert "\n" not in str(caught.value)


def test_collate_fn_is_refused_for_arrays() -> None:
    with pytest.raises(ConfigError, match="transform="):
        Feed(torch.ones(3), 2, collate_fn=list)
