"""Transfer: structures kept, nothing done on the CPU, right and waitless on CUDA."""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from typing import Any

import pytest
import torch
from torch.nn.utils.rnn import pack_sequence

from trueloop.feed import Feed
from trueloop.feed.transfer import map_batch, to_device

Pair = namedtuple("Pair", ["left", "right"])
CUDA = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")


class Movable:
    """An object with a `to` of its own, as a graph library's batch."""

    def __init__(self, values: torch.Tensor) -> None:
        self.values = values

    def to(self, device: torch.device) -> Movable:
        return Movable(self.values.to(device))


def nested(x: torch.Tensor) -> Any:
    return {"a": (x, [x + 1, "text"]), "b": Pair(x + 2, 3), "c": OrderedDict(d=Movable(x + 4))}


def test_map_batch_keeps_types_and_the_rest() -> None:
    x = torch.arange(3)
    changed = map_batch(nested(x), lambda t: t * 10, lambda part: part.values)
    expected = {
        "a": (x * 10, [x * 10 + 10, "text"]),
        "b": Pair(x * 10 + 20, 3),
        "c": OrderedDict(d=x + 4),
    }
    assert type(changed["b"]) is Pair
    assert type(changed["c"]) is OrderedDict
    assert changed["a"][1][1] == "text"
    assert changed["b"].right == 3
    torch.testing.assert_close(changed["a"][0], expected["a"][0])
    torch.testing.assert_close(changed["b"].left, expected["b"].left)
    torch.testing.assert_close(changed["c"]["d"], expected["c"]["d"])


def test_on_the_cpu_nothing_happens() -> None:
    batches = [torch.arange(3), torch.arange(4)]
    source = iter(batches)
    assert to_device(source, None) is source
    moved = list(to_device(iter(batches), torch.device("cpu")))
    assert all(one is two for one, two in zip(moved, batches, strict=True))


def test_a_feed_on_the_cpu_is_a_feed_without_device() -> None:
    x = torch.randn(50, 3)
    for plain, placed in zip(Feed(x, 8), Feed(x, 8, device="cpu"), strict=True):
        assert torch.equal(plain, placed)
        assert placed.device.type == "cpu"


@CUDA
def test_structures_arrive_on_cuda() -> None:
    device = torch.device("cuda")
    sources = [nested(torch.arange(3) + i).copy() for i in range(4)]
    for i, batch in enumerate(to_device(iter(sources), device)):
        assert batch["a"][0].is_cuda
        assert batch["a"][0].tolist() == [i, i + 1, i + 2]
        assert batch["a"][1][1] == "text"
        assert batch["b"].left.tolist() == [i + 2, i + 3, i + 4]
        assert batch["c"]["d"].values.is_cuda
    packed = next(to_device(iter([pack_sequence([torch.ones(2)])]), device))
    assert packed.data.is_cuda


@CUDA
@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("kind", ["arrays", "dataset"])
def test_batches_on_cuda_are_right_while_memory_is_reused(kind: str, workers: int) -> None:
    # Large batches, freed at once, under a queue of slow kernels: a missing wait or a block of
    # memory given away too early shows as wrong sums.
    x = torch.arange(400 * 25_000, dtype=torch.float32).reshape(400, 25_000) % 1013
    data: Any = x if kind == "arrays" else list(x.unbind())
    if kind == "dataset":
        data = [(row, 0) for row in data]
    feed = Feed(data, 16, shuffle=True, device="cuda", workers=workers)
    expected = Feed(data, 16, shuffle=True)
    weight = torch.randn(2000, 2000, device="cuda")
    sums = []
    for batch in feed.epoch(1):
        part = batch if kind == "arrays" else batch[0]
        assert part.is_cuda
        for _ in range(10):
            weight = torch.tanh(weight @ weight)
        sums.append(part.double().sum(dim=1))
        del batch, part
    for got, batch in zip(sums, expected.epoch(1), strict=True):
        part = batch if kind == "arrays" else batch[0]
        assert torch.equal(got.cpu(), part.double().sum(dim=1))


@CUDA
def test_arrays_reach_cuda_without_a_wait() -> None:
    feed = Feed((torch.randn(4096, 8), torch.randint(3, (4096,))), 64, shuffle=True, device="cuda")
    list(feed.epoch(0))
    torch.cuda.set_sync_debug_mode("error")
    try:
        assert sum(1 for _ in feed.epoch(1)) == 64
    finally:
        torch.cuda.set_sync_debug_mode("default")


@CUDA
def test_draws_and_data_on_cuda_stay_there() -> None:
    x = torch.arange(100.0, device="cuda")
    feed = Feed(x, 10, shuffle=True, transform=lambda batch, draws: batch + draws(1)[:, 0])
    on_cpu = Feed(x.cpu(), 10, shuffle=True, transform=lambda batch, draws: batch + draws(1)[:, 0])
    for got, expected in zip(feed, on_cpu, strict=True):
        assert got.is_cuda
        assert torch.equal(got.cpu(), expected)
