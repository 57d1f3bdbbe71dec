"""Loaders of the user's own, and streams, on several ranks."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, DistributedSampler, IterableDataset

import trueloop
from on_ranks import on_ranks
from trueloop import ranks
from trueloop.errors import UserError
from trueloop.feed import Feed
from trueloop.feed.split import digest


class Rows(Dataset[Any]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([float(index), float(torch.rand(()))])


class Lines(IterableDataset[Any]):
    def __init__(self, size: int) -> None:
        self.size = size

    def __iter__(self) -> Iterator[Any]:
        return (torch.tensor([float(index)]) for index in range(self.size))


class OwnPart(Lines):
    """A stream that splits itself by rank, and says so."""

    @property
    def rank(self) -> int:
        return ranks.rank()

    @property
    def num_replicas(self) -> int:
        return ranks.world_size()

    def __iter__(self) -> Iterator[Any]:
        mine = range(self.rank, self.size, self.num_replicas)
        return (torch.tensor([float(index)]) for index in mine)


class SilentlyOwnPart(OwnPart):
    rank = num_replicas = None  # type: ignore[assignment]

    def __iter__(self) -> Iterator[Any]:
        mine = range(ranks.rank(), self.size, ranks.world_size())
        return (torch.tensor([float(index)]) for index in mine)


def split_loader(size: int, batch_size: int, **options: Any) -> DataLoader[Any]:
    data = Rows(size)
    sampler = DistributedSampler(data, **options)
    return DataLoader(data, batch_size=batch_size, sampler=sampler)


def _message(function: Any, *args: Any) -> str:
    try:
        function(*args)
    except UserError as error:
        return f"{type(error).__name__}: {error}"
    return ""


def _epochs() -> dict[str, Any]:
    torch.manual_seed(ranks.rank())
    found: dict[str, Any] = {}
    feed = Feed(split_loader(14, 3))
    found["length"], found["samples"] = len(feed), feed.samples
    for epoch in range(2):
        found[epoch] = [batch[:, 0].tolist() for batch in feed.epoch(epoch)]
    found["streamed"] = [
        batch.flatten().tolist() for batch in Feed(DataLoader(OwnPart(12), batch_size=2))
    ]
    return found


def test_a_split_loader_is_taken_as_it_is() -> None:
    each = on_ranks(2, _epochs)
    for found in each:
        assert (found["length"], found["samples"]) == (3, 14)
    for epoch in range(2):
        batches = [batch for found in each for batch in found[epoch]]
        assert sorted(i for batch in batches for i in batch) == list(range(14))
    assert each[0][0] != each[0][1], "the sampler is told the epoch"
    assert each[1]["streamed"] == [[1.0, 3.0], [5.0, 7.0], [9.0, 11.0]]


def _refusals() -> dict[str, str]:
    rank, model = ranks.rank(), torch.nn.Linear(2, 1)

    def loss_fn(model: Any, batch: Any) -> Any:
        return model(batch).mean()

    plain = DataLoader(Rows(14), batch_size=3)
    uneven = split_loader(4 + 8 * rank, 3, num_replicas=2, rank=rank)
    wrong = split_loader(14, 3, num_replicas=4, rank=rank)
    feed, sgd = Feed(torch.zeros(4, 2), 2), torch.optim.SGD(model.parameters(), lr=0.1)
    step = trueloop.Step(model, sgd, loss_fn, parallel="ddp")
    return {
        "fit": _message(lambda: trueloop.fit(step, feed, plain, epochs=1)),
        "fit's step": str(step.updates),
        "plain": _message(Feed(plain).epoch, 0),
        "scored": _message(trueloop.evaluate, model, plain, loss_fn),
        "wrong": _message(Feed(wrong).epoch, 0),
        "uneven": _message(Feed(uneven).epoch, 0),
        "twice": _message(trueloop.evaluate, model, split_loader(13, 3), loss_fn),
        "once": _message(trueloop.evaluate, model, split_loader(14, 3), loss_fn),
        "own": _message(Feed(OwnPart(12), 4).epoch, 0),
        "silent": _message(list, Feed(SilentlyOwnPart(12), 4)),
        "silent in a worker": _message(list, Feed(SilentlyOwnPart(12), 4)),
        "unknown": _message(list, Feed(DataLoader(_Uneven(5), batch_size=1))),
        "even": _message(list, Feed(DataLoader(OwnPart(6), batch_size=1))),
        "fewer": _message(list, Feed(Lines(9), 1)),
    }


class _Uneven(OwnPart):
    """Rank 0 has one sample more."""


def test_what_would_hang_or_count_twice_is_said_on_every_rank() -> None:
    one, other = on_ranks(2, _refusals)
    assert one["plain"] == (
        "ConfigError: each of the 2 ranks would read the same batches from this DataLoader: write "
        "Feed(loader.dataset, batch_size=...), or give the loader a "
        "torch.utils.data.DistributedSampler"
    )
    assert one["scored"] == one["fit"] == one["plain"]
    assert one["fit's step"] == "0", "before the first batch"
    assert "takes the samples of rank 0 of 4, and this is rank 0 of 2: write" in one["wrong"]
    assert "rank 0 1, rank 1 2; the longer ones would wait for ever" in one["uneven"]
    assert "gives 1 of 13 samples twice" in one["twice"]
    assert one["once"] == one["even"] == ""
    assert "OwnPart is split by rank already" in one["own"]
    assert "read different samples from the SilentlyOwnPart" in one["silent"]
    assert "some ranks ended after 2 batches, and those of others have more" in one["unknown"]
    assert "batch_size=1 counts the samples of all 2 ranks" in one["fewer"]
    for name in one:
        assert one[name] == other[name] or name == "wrong"


def _state_of_a_loader() -> tuple[bytes, list[int], list[list[float]]]:
    torch.manual_seed(7 + ranks.rank())
    feed = Feed(split_loader(16, 2))
    batches = feed.epoch(3)
    next(batches), next(batches)
    state = io.BytesIO()
    torch.save(feed.state_dict(), state)
    generator = torch.get_rng_state().tolist()
    return state.getvalue(), generator, [batch.tolist() for batch in batches]


def _gone_on(state: bytes, generators: list[list[int]]) -> Any:
    feed = Feed(split_loader(16, 2))
    feed.load_state_dict(torch.load(io.BytesIO(state)))
    # As a checkpoint brings it back.
    torch.set_rng_state(torch.tensor(generators[ranks.rank()], dtype=torch.uint8))
    return [batch.tolist() for batch in feed.epoch(*feed.position)]


@pytest.mark.filterwarnings("ignore:replayed")
def test_a_split_loader_goes_on_on_each_rank_as_it_was() -> None:
    saved = on_ranks(2, _state_of_a_loader)
    assert saved[0][0] == saved[1][0], "the state is the same on every rank"
    generators = [generator for _, generator, _ in saved]
    assert on_ranks(2, _gone_on, saved[0][0], generators) == [rest for _, _, rest in saved]
    (alone,) = on_ranks(1, _loaded_alone, saved[0][0])
    assert (
        "are those of 2 ranks, each with its own batches, and these of 1: continue with 2" in alone
    )


def _loaded_alone(state: bytes) -> str:
    data = Rows(16)
    feed = Feed(DataLoader(data, batch_size=2, sampler=DistributedSampler(data, 2, 0)))
    loaded = torch.load(io.BytesIO(state)) | {"samples": feed.samples}
    return _message(feed.load_state_dict, loaded)


def test_a_digest_is_of_the_values() -> None:
    sample = {"x": torch.arange(6.0).reshape(2, 3).T, "y": [1, "word", np.float32(2), None]}
    same = {
        "x": torch.arange(6.0).reshape(2, 3).T.contiguous(),
        "y": [1, "word", np.float32(2), None],
    }
    assert digest(sample) == digest(same)
    for other in ({**sample, "x": torch.zeros(3, 2)}, {**sample, "y": [2, "word"]}, 3, "word"):
        assert digest(sample) != digest(other)
