"""Loaders and streams that know where they stand: a resume goes on from there, or says its cost."""

from __future__ import annotations

import collections
import functools
import itertools
import os
import random
import signal
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, IterableDataset

import trueloop
from trueloop.checkpoint import Checkpoints, load_checkpoint
from trueloop.errors import RunError
from trueloop.feed import Feed
from trueloop.feed.cursor import OwnState, plain
from trueloop.records import StepRecord

SIZE = 45
READ = {"samples": 0}


def sample(index: int, epoch: int) -> tuple[torch.Tensor, torch.Tensor]:
    """One with noise from all three generators."""
    READ["samples"] += 1
    x = torch.full((3,), index / SIZE + epoch) + 0.1 * torch.rand(3)
    x[0] += 0.1 * random.random() + 0.1 * float(np.random.rand())
    return x, x.sum()


class Plain(IterableDataset[Any]):
    """Starts afresh each time."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Iterator[Any]:
        return (sample(index, self.epoch) for index in range(SIZE))


class Buffered(IterableDataset[Any]):
    """A shuffle buffer with a generator of its own, which goes on from epoch to epoch: nothing but
    its state leads to a place in it."""

    def __init__(self) -> None:
        self.random = random.Random(3)
        self.read = self.passes = 0
        self.buffer: list[int] = []

    def __iter__(self) -> Iterator[Any]:
        while self.read < SIZE or self.buffer:
            while self.read < SIZE and len(self.buffer) < 10:
                self.buffer.append(self.read)
                self.read += 1
            index = self.buffer.pop(self.random.randrange(len(self.buffer)))
            yield sample(index, self.passes)
        self.read, self.passes = 0, self.passes + 1

    def state_dict(self) -> dict[str, Any]:
        # The list is live: whoever keeps it must copy it.
        return {
            "read": self.read,
            "passes": self.passes,
            "buffer": self.buffer,
            "random": self.random.getstate(),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.read, self.passes, self.buffer = state["read"], state["passes"], state["buffer"]
        self.random.setstate(state["random"])


class FromStart(Plain):
    """After its last sample, the state is that of the end, from which nothing follows."""

    start = at = 0

    def __iter__(self) -> Iterator[Any]:
        first, self.start = self.start, 0
        for index in range(first, SIZE):
            self.at = index + 1
            yield sample(index, self.epoch)

    def state_dict(self) -> dict[str, Any]:
        return {"at": self.at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.start = state["at"]
        random.seed(0)  # which is to disturb nobody


class SentToTheStart(FromStart):
    """An epoch begins when it is told."""

    def set_epoch(self, epoch: int) -> None:
        self.epoch, self.start = epoch, 0


class Batches:
    """A loader that is none of torch's, with a length or without."""

    def __init__(self) -> None:
        self.samples = Buffered()

    def __iter__(self) -> Iterator[Any]:
        batch = []
        for one in self.samples:
            batch.append(one)
            if len(batch) == 9:
                yield tuple(map(torch.stack, zip(*batch, strict=True)))
                batch = []

    def state_dict(self) -> dict[str, Any]:
        return self.samples.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.samples.load_state_dict(state)


class SizedBatches(Batches):
    def __len__(self) -> int:
        return SIZE // 9


class Indexed(Dataset[Any]):
    def __len__(self) -> int:
        return SIZE

    def __getitem__(self, index: int) -> Any:
        return sample(index, 0)


class Quiet(Indexed):
    """Without noise: a worker's generators are in no state."""

    def __getitem__(self, index: int) -> Any:
        return torch.full((3,), index / SIZE), torch.tensor(index / SIZE)


class Walk(DataLoader[Any]):
    """A DataLoader with an order that goes on from epoch to epoch, and its state."""

    def __init__(self, **options: Any) -> None:
        data = Quiet() if options else Indexed()
        super().__init__(data, batch_sampler=_Orders(), **options)
        self.done = 0

    def __iter__(self) -> Any:
        self.batch_sampler.skip, skipped = self.done, self.done  # type: ignore[union-attr]
        batches = super().__iter__()
        self.seed = batches._base_seed
        for self.done, batch in enumerate(batches, start=skipped + 1):
            yield batch
        self.done = 0
        self.batch_sampler.epochs += 1  # type: ignore[union-attr]

    def state_dict(self) -> dict[str, Any]:
        return {"done": self.done, "epochs": self.batch_sampler.epochs}  # type: ignore[union-attr]

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.done = state["done"]
        self.batch_sampler.epochs = state["epochs"]  # type: ignore[union-attr]


class _Orders:
    epochs = skip = 0

    def __len__(self) -> int:
        return 5

    def __iter__(self) -> Iterator[list[int]]:
        order = np.random.default_rng(self.epochs).permutation(SIZE).reshape(5, 9).tolist()
        yield from order[self.skip :]


class Shuffled(DataLoader[Any]):
    """A loader that draws its order when its iterator is made, from a generator it was given, and
    draws it again from its state; from that of an epoch's end, it then begins the next one."""

    def __init__(self) -> None:
        self.order: list[int] = list(range(SIZE))
        self.shuffle = torch.Generator().manual_seed(1)
        super().__init__(Indexed(), 9, sampler=self.order, generator=self.shuffle)
        self.loaded: dict[str, Any] | None = None

    def __iter__(self) -> Any:
        state, self.loaded = self.loaded, None
        self._draw()
        batches = super().__iter__()
        if state is None:
            return self._counted(batches, 0)
        self.shuffle.set_state(state["drawn at"])
        self._draw()
        if not state["ended"]:
            torch.rand(1)  # as one that fetches its way forward
            return self._counted(batches, state["done"])
        self._draw()
        return self._counted(super().__iter__(), 0)

    def _draw(self) -> None:
        self.drawn_at = self.shuffle.get_state()
        self.order[:] = torch.randperm(SIZE, generator=self.shuffle).tolist()

    def _counted(self, batches: Any, done: int) -> Iterator[Any]:
        self.done, self.ended = done, False
        batches._sampler_iter = itertools.islice(batches._sampler_iter, done, None)
        for batch in batches:
            self.done += 1
            yield batch
        self.ended = True

    def state_dict(self) -> dict[str, Any]:
        return {"done": self.done, "ended": self.ended, "drawn at": self.drawn_at}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.loaded = state


class NotPlain(Plain):
    """Has a state that no checkpoint can store."""

    def state_dict(self) -> dict[str, Any]:
        return {"buffers": [collections.deque([1])]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        raise AssertionError


class Raising(NotPlain):
    def state_dict(self) -> dict[str, Any]:
        raise NotImplementedError("not\nyet")


OWN: dict[str, Any] = {
    "stream": lambda: Feed(Buffered(), 9),
    "ragged stream": lambda: Feed(Buffered(), 7),
    "ragged stream without its rest": lambda: Feed(Buffered(), 8, drop_last=True),
    "stream from a start": lambda: Feed(FromStart(), 9),
    "stream sent to its start": lambda: Feed(SentToTheStart(), 9),
    "loader of a stream": lambda: DataLoader(Buffered(), 9),
    "loader of a stream sent to its start": lambda: DataLoader(SentToTheStart(), 9),
    "loader of a ragged stream": lambda: DataLoader(FromStart(), 7),
    "batches": Batches,
    "sized batches": SizedBatches,
    "data loader": Walk,
    "shuffled data loader": Shuffled,
    "data loader with workers": lambda: Walk(num_workers=1),
}
REPLAYED: dict[str, tuple[Any, str]] = {
    "stream": (lambda: Feed(Plain(), 9), "Plain has no state_dict"),
    "worker": (lambda: Feed(FromStart(), 9, workers=1), "FromStart is read in a worker"),
    "loader of a stream": (lambda: DataLoader(Plain(), 9), "DataLoader has no state_dict"),
    "loader in workers": (
        lambda: DataLoader(FromStart(), 9, num_workers=1),
        "DataLoader has no state_dict, and FromStart is read in workers",
    ),
    "loader": (
        lambda: DataLoader(Indexed(), 9, shuffle=True, generator=torch.Generator()),
        "DataLoader has no state_dict",
    ),
    "loader with workers": (
        lambda: DataLoader(Indexed(), 9, shuffle=True, num_workers=1),
        "DataLoader has no state_dict",
    ),
    "workers that live on": (
        lambda: DataLoader(Quiet(), 9, shuffle=True, num_workers=1, persistent_workers=True),
        "DataLoader has no state_dict",
    ),
}


class At:
    """A sink that sends SIGINT when the batch (epoch, batch) has been taken."""

    def __init__(self, where: tuple[int, int]) -> None:
        self.where = where

    def __call__(self, record: Any) -> None:
        if isinstance(record, StepRecord) and (record.epoch, record.batch) == self.where:
            os.kill(os.getpid(), signal.SIGINT)


def train(data: Any, folder: Path, **options: Any) -> tuple[nn.Module, list[Any]]:
    """Three epochs, with dropout, which draws from torch's global generator, and accumulation."""
    torch.manual_seed(7)
    np.random.seed(7)
    random.seed(7)
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.3), nn.Linear(8, 1), nn.Flatten(0))
    optimizer = trueloop.optimizers.adam(model, 1e-2)
    loss_fn = trueloop.supervised(nn.MSELoss())
    step = trueloop.Step(model, optimizer, loss_fn, accumulate=2)
    run = trueloop.Run(folder) if folder.is_dir() else trueloop.Run.create(folder, config={})
    saved = Checkpoints(run.checkpoints, keep_best=None, every="1 updates", keep_last=99)
    trueloop.fit(step, data, epochs=3, run=run, checkpoints=saved, **options)
    lines = [
        {name: value for name, value in line.items() if name not in ("time", "seconds")}
        for line in run.metrics()
    ]
    return model, lines


def same(one: Any, two: Any) -> bool:
    weights = zip(one[0].parameters(), two[0].parameters(), strict=True)
    return all(torch.equal(a, b) for a, b in weights) and repr(one[1]) == repr(two[1])


def train_with_a_stop(make: Any, folder: Path, where: tuple[int, int]) -> Any:
    """`where` is the batch after which it stops; a batch of -1 is after that epoch's evaluation."""
    stop = At(where) if where[1] >= 0 else _StopAfter(where[0])
    train(make(), folder, sinks=[stop])
    state = load_checkpoint(folder / "checkpoints")
    READ["samples"] = 0
    return train(make(), folder, resume_from=state)


class _StopAfter:
    def __init__(self, epoch: int) -> None:
        self.epoch = epoch

    def __call__(self, record: Any) -> None:
        if not isinstance(record, StepRecord) and record.epoch == self.epoch:
            os.kill(os.getpid(), signal.SIGINT)


# Inside an epoch, inside a window; at the last batch; between epochs.
PLACES = [(1, 0), (1, 2), (1, 4), (1, -1)]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Any], Any]:
    """The run without a stop, which is the same for each place of a stop."""
    return functools.cache(lambda make: train(make(), tmp_path_factory.mktemp("whole") / "run"))


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("kind", OWN)
def test_a_state_of_its_own_is_gone_on_from(
    tmp_path: Path, trained: Callable[[Any], Any], kind: str, where: tuple[int, int]
) -> None:
    whole = trained(OWN[kind])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        resumed = train_with_a_stop(OWN[kind], tmp_path / "stopped", where)
    assert same(resumed, whole)
    if "workers" not in kind:
        left = {0: 4, 2: 2, 4: 0, -1: 0}[where[1]] if "ragged" not in kind else None
        assert left is None or READ["samples"] == 9 * (left + 5)  # none is read again


@pytest.mark.parametrize("where", PLACES)
@pytest.mark.parametrize("kind", REPLAYED)
def test_a_replay_is_exact_too_and_its_cost_said(
    tmp_path: Path, trained: Callable[[Any], Any], kind: str, where: tuple[int, int]
) -> None:
    make, why = REPLAYED[kind]
    whole = trained(make)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RuntimeWarning)
        resumed = train_with_a_stop(make, tmp_path / "stopped", where)
    assert same(resumed, whole)
    notes = [str(one.message) for one in said if "replayed" in str(one.message)]
    at_its_end = where[1] == 4 and isinstance(make(), Feed)  # nothing is left to read
    if where[1] == -1 or at_its_end:
        assert notes == []
        return
    (note,) = notes
    count = {0: "1 batch", 2: "3 batches", 4: "5 batches"}[where[1]]
    assert note.startswith(f"replayed {count} to reach the saved position ({why}")
    assert note.endswith(" s")
    assert "\n" not in note


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (NotPlain, "NotPlain.state_dict() contains a collections.deque at ['buffers'][0], which a"),
        (Raising, "Raising.state_dict() raised NotImplementedError: not yet"),
    ],
)
def test_a_state_that_cannot_be_stored_is_said_and_replayed(
    tmp_path: Path, data: Any, why: str
) -> None:
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", RuntimeWarning)
        whole = train(Feed(data(), 9), tmp_path / "whole")
        stored = [str(one.message) for one in said]
        resumed = train_with_a_stop(lambda: Feed(data(), 9), tmp_path / "stopped", (1, 2))
        notes = [str(one.message) for one in said]
    assert same(resumed, whole)
    (refusal,) = stored  # once in a run
    assert refusal.startswith(why)
    assert refusal.endswith("goes through the batches of its epoch again")
    (replay,) = [note for note in notes if note.startswith("replayed 3 batches to")]
    assert why in replay


@pytest.mark.parametrize("kind", ["stream", "batches", "data loader"])
def test_a_loop_of_ones_own_goes_on_too(tmp_path: Path, kind: str) -> None:
    def loop(folder: Path, stop: int | None = None) -> Any:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(3, 1), nn.Dropout(0.2), nn.Flatten(0))
        optimizer = trueloop.optimizers.adam(model, 1e-2)
        step = trueloop.Step(model, optimizer, trueloop.supervised(nn.MSELoss()))
        made = OWN[kind]()
        feed = made if isinstance(made, Feed) else Feed(made)
        saved = Checkpoints(folder, every="1 updates")
        saved.resume(step, feed)
        for epoch in range(step.epoch, 2):
            for batch in feed.epoch(epoch, start=step.batch):
                step(batch)
                saved.keep(step, feed)
                if step.updates == stop:
                    saved.wait()
                    return None
            step.end_epoch()
        saved.wait()
        return model, feed.state_dict()

    whole = loop(tmp_path / "whole")
    for stop in (3, 5, 7):
        folder = tmp_path / str(stop)
        loop(folder, stop)
        random.seed(0)
        np.random.seed(0)
        resumed = loop(folder)
        if kind == "stream":  # whose noise is a function of the place
            assert same(resumed, whole)


@pytest.mark.parametrize("kind", OWN)
def test_the_state_belongs_to_the_batch_handed_out(kind: str) -> None:
    made = OWN[kind]()
    feed = made if isinstance(made, Feed) else Feed(made)
    batches = feed.epoch(0)
    for count in (1, 2):
        next(batches)
        state = feed.state_dict()
        again = OWN[kind]()
        other = again if isinstance(again, Feed) else Feed(again)
        other.load_state_dict(state)
        assert other.state_dict()["place"] == state["place"]
        place = other.position
        assert place == (0, count)
        assert state["place"]["own"] == other.state_dict()["place"]["own"]


def test_workers_are_seeded_anew_by_each_resume() -> None:
    feed = Feed(Walk())
    next(feed.epoch(0))
    state, seeds = feed.state_dict(), set()
    for seed in (1, 2):
        torch.manual_seed(seed)
        loader = Walk()
        other = Feed(loader)
        other.load_state_dict(state)
        next(other.epoch(*other.position))
        seeds.add(loader.seed)
    assert len(seeds) == 2


def test_the_state_after_an_epoch_is_that_of_its_end() -> None:
    feed = Feed(Walk())
    batches = feed.epoch(0)
    for _ in range(5):
        next(batches)
    assert feed.state_dict()["place"]["own"] == {"done": 5, "epochs": 0}
    assert list(batches) == []
    assert feed.position == (1, 0)
    assert feed.state_dict()["place"]["own"] == {"done": 0, "epochs": 1}


def test_a_feed_goes_back_to_where_it_stands() -> None:
    feed = Feed(Buffered(), 9)
    batches = feed.epoch(0)
    next(batches)
    expected = [x for x, _ in batches]
    feed = Feed(Buffered(), 9)
    next(feed.epoch(0))
    found = [x for x, _ in feed.epoch(*feed.position)]
    assert all(torch.equal(a, b) for a, b in zip(found, expected, strict=True))


def test_a_checkpoint_without_a_state_is_replayed() -> None:
    feed = Feed(FromStart(), 9)
    next(feed.epoch(0))
    state = feed.state_dict()
    del state["place"]  # as in an earlier version
    other = Feed(FromStart(), 9)
    other.load_state_dict(state)
    with pytest.warns(RuntimeWarning, match="the checkpoint contains no state of it"):
        rest = list(other.epoch(0, 1))
    assert len(rest) == 4


def test_a_state_that_is_not_taken_up_is_an_error() -> None:
    class Other(FromStart):
        def load_state_dict(self, state: dict[str, Any]) -> None:
            self.start = state["position"]

    feed = Feed(FromStart(), 9)
    next(feed.epoch(0))
    other = Feed(Other(), 9)
    other.load_state_dict(feed.state_dict())
    with pytest.raises(RunError, match=r"Other.load_state_dict does not take .*KeyError") as e:
        next(other.epoch(0, 1))
    assert "\n" not in str(e.value)


def test_a_loader_with_other_generators_is_an_error() -> None:
    def make(own: bool) -> Feed:
        generator = torch.Generator() if own else None
        return Feed(DataLoader(Indexed(), 9, shuffle=True, generator=generator))

    feed = make(True)
    next(feed.epoch(0))
    other = make(False)
    with pytest.raises(RunError, match="had 1 private generators and this one has 0"):
        other.load_state_dict(feed.state_dict())
    assert other.position == (0, 0)


def test_only_a_loader_of_batches_needs_no_batch_size() -> None:
    feed = Feed(SizedBatches())
    assert (len(feed), feed.samples, feed.batch_size) == (5, None, None)
    assert not Feed(Batches()).has_length
    assert len(list(feed.epoch(0))) == 5
    with pytest.raises(
        trueloop.errors.ConfigError, match="SizedBatches makes its own batches, so Feed takes no"
    ):
        Feed(SizedBatches(), shuffle=True)
    with pytest.raises(trueloop.errors.ConfigError, match="batch_size=None"):
        Feed(Buffered())


def test_what_is_plain(tmp_path: Path) -> None:
    tensor = torch.ones(2, requires_grad=True)
    value = {
        "a": [1, 2.5, None, True, "x", b"y", 1j, 2**100],
        3: (tensor, {4, 5}),
        "o": collections.OrderedDict(b=[]),
    }
    copy = plain(value)
    torch.save(copy, tmp_path / "state")
    read = torch.load(tmp_path / "state", weights_only=True)
    assert repr(read) == repr({**value, 3: (tensor.detach(), {4, 5}), "o": {"b": []}})
    copy["a"].append(0)
    copy["o"]["b"].append(0)
    copy[3][0].zero_()
    assert (len(value["a"]), value["o"]["b"], tensor.tolist()) == (8, [], [1, 1])  # type: ignore[index]


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (np.float64(1), "numpy.float64"),
        (np.zeros(2), "numpy.ndarray"),
        (range(3), "range"),
        (2**4000, "int"),
        (nn.Parameter(torch.ones(1)), "torch.nn.parameter.Parameter"),
    ],
    ids=["scalar", "array", "range", "huge", "parameter"],
)
def test_what_is_not_plain(value: Any, name: str) -> None:
    class Owner:
        def state_dict(self) -> dict[str, Any]:
            return {"x": value}

        load_state_dict = None

    with pytest.raises(TypeError, match=rf"a {name} at \['x'\]"):
        plain({"x": value})
    assert OwnState(Owner()).why == "Owner has no load_state_dict"
