"""What the watcher sees of data: samples by number, seeds, workers, parts of data sets."""

from __future__ import annotations

import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset, Subset, SubsetRandomSampler, TensorDataset

from trueloop.doctor.live.probes import data, worker_draws
from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.events import BatchFetched, Seeded, Used
from trueloop.doctor.model.measurements import Measured


class Noisy(Dataset[torch.Tensor]):
    def __init__(self, own: object = None, *, mode_dependent: bool = True) -> None:
        self.own, self.mode_dependent = own, mode_dependent

    def __len__(self) -> int:
        return 8

    def __getitem__(self, index: int) -> torch.Tensor:
        value = torch.zeros(1)
        if self.mode_dependent:
            value = self.jitter(value)
        return value

    def jitter(self, value: torch.Tensor) -> torch.Tensor:
        return value + (self.own.random() if self.own is not None else np.random.rand())  # type: ignore[attr-defined]


@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("number", [0, 2])
def test_samples_are_known_by_number(watcher: Watcher, number: int, persistent: bool) -> None:
    loader = DataLoader(
        TensorDataset(torch.arange(24)),
        batch_size=4,
        shuffle=True,
        num_workers=number,
        persistent_workers=persistent and number > 0,
    )
    for _ in range(2):
        for (values,) in loader:
            assert watcher.recorder.track().indices == values.tolist()


def test_what_a_data_set_draws() -> None:
    own = np.random.default_rng(0)
    (draw,) = worker_draws.draws_of(Noisy(own))
    assert draw.library == ""
    assert draw.name == "Noisy.jitter"
    assert [each.library for each in worker_draws.draws_of(Subset(Noisy(), [1, 2]))] == ["numpy"]
    assert worker_draws.draws_of(Noisy(own, mode_dependent=False)) == []
    assert worker_draws.draws_of(TensorDataset(torch.zeros(3))) == []


def test_reading_draws_runs_nothing() -> None:
    class Careful(Dataset[int]):
        @property
        def rng(self) -> object:
            raise AssertionError("was run")

        def __getitem__(self, index: int) -> int:
            return int(self.rng.integers(3))  # type: ignore[attr-defined]

    assert worker_draws.draws_of(Careful()) == []


def test_seeds_are_seen_and_undone() -> None:
    before = torch.manual_seed
    watcher = Watcher([])
    watcher.start()
    seen: list[object] = []
    watcher.recorder.listeners.append(
        lambda event: seen.append(event) if isinstance(event, (Seeded, Used)) else None
    )
    states = torch.get_rng_state(), np.random.get_state(), random.getstate()
    torch.manual_seed(3)
    np.random.seed(4)
    random.seed(5)
    with torch.random.fork_rng():
        torch.manual_seed(6)
    torch.set_rng_state(states[0])
    np.random.set_state(states[1])
    random.setstate(states[2])
    told = [(each.library, each.value) for each in seen if isinstance(each, Seeded)]
    assert told == [("torch", 3), ("numpy", 4), ("random", 5), ("torch", 6)]
    assert sum(isinstance(each, Used) for each in seen) == 2
    watcher.stop()
    assert torch.manual_seed is before
    assert watcher.hub.errors == []


def test_samples_that_a_loader_reaches() -> None:
    rows = torch.randn(20, 3)
    base = TensorDataset(rows[5:])
    # Each loader is gone when its iterator is asked.
    part = Subset(Subset(base, range(4, 12)), [1, 3])
    key, _, samples = data._reach(iter(DataLoader(part))) or (0, 0, 0)
    assert samples == frozenset((10, 12))
    sampler = SubsetRandomSampler([2])
    other = data._reach(iter(DataLoader(TensorDataset(rows[:8]), sampler=sampler)))
    assert other is not None
    assert other[0] == key
    assert other[2] == frozenset([2])
    windows = torch.arange(30.0).unfold(0, 4, 1)
    found = data._reach(iter(DataLoader(TensorDataset(windows))))
    assert found is not None
    assert found[0][0] == "object"
    assert data._reach(iter(DataLoader(TensorDataset(windows), batch_size=None))) is None


def test_no_batch_is_kept(watcher: Watcher) -> None:
    import gc
    import weakref

    loader = DataLoader(TensorDataset(torch.randn(40, 3), torch.randn(40, 1)), batch_size=8)
    gone = []
    for inputs, target in loader:
        gone += [weakref.ref(inputs), weakref.ref(target)]
    del inputs, target
    gc.collect()
    assert [each() for each in gone] == [None] * len(gone)


def test_numbers_of_the_generators_are_untouched() -> None:
    def run() -> list[float]:
        torch.manual_seed(0)
        loader = DataLoader(TensorDataset(torch.randn(40, 3), torch.rand(40)), 8, shuffle=True)
        model = torch.nn.Linear(3, 1)
        found = []
        for inputs, target in loader:
            loss = torch.nn.functional.mse_loss(model(inputs)[:, 0], target)
            loss.backward()
            found.append(loss.item())
        return [*found, torch.rand(1).item()]

    plain = run()
    watcher = Watcher()
    watcher.start()
    watched = run()
    watcher.stop()
    assert watched == plain
    assert watcher.hub.errors == []


def test_rows_that_are_no_numbers() -> None:
    values = torch.zeros(4, 3)
    values[1, 2], values[3, 0] = float("nan"), float("-inf")
    found = data._rows(values, values.isnan(), None)
    assert found is not None
    assert (found.rows, found.count, found.kind) == ([1], 1, "NaN")
    found = data._rows(values, ~values.isfinite(), None)
    assert found is not None
    assert (found.rows, found.count) == ([1, 3], 2)
    assert data._rows(values, values.isposinf(), None) is None


def test_batches_are_events_with_their_parts(watcher: Watcher) -> None:
    seen: list[object] = []
    watcher.recorder.listeners.append(
        lambda event: seen.append(event) if isinstance(event, (BatchFetched, Measured)) else None
    )
    for _ in DataLoader(TensorDataset(torch.zeros(4, 2), torch.zeros(4)), batch_size=2):
        pass
    parts = [each.batch for each in seen if isinstance(each, BatchFetched)]
    assert [[part.position for part in batch] for batch in parts] == [[0, 1], [0, 1]]
