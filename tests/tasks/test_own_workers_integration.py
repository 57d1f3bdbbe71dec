"""A data set of the user's own file, fetched by worker processes however they are started."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.errors import DataError
from trueloop.feed import Feed
from trueloop.tasks import load

OWN = '''
import os

import torch
from torch.utils.data import DataLoader

import trueloop
from beside import shifted


class Samples:
    def __len__(self):
        return 12

    def __getitem__(self, index):
        return shifted(index) + torch.rand(2)


class Fatal(Samples):
    def __getitem__(self, index):
        os.kill(os.getpid(), 9)


class Mine(trueloop.Task):
    """With data that workers fetch."""

    def splits(self):
        loader = DataLoader(Samples(), 4, num_workers=1, generator=torch.Generator())
        return trueloop.tasks.Splits(train=Samples(), val=loader)

    def fatal(self):
        return Fatal()

    def local(self):
        samples = Samples()
        samples.transform = lambda x: x
        return samples
'''


@pytest.fixture
def task(tmp_path: Path) -> Any:
    (tmp_path / "beside.py").write_text("def shifted(index):\n    return index + 100\n")
    # Of several files of one name in one process, workers can find only the first.
    file = tmp_path / f"own_{tmp_path.name}.py"
    file.write_text(OWN)
    return load(f"{file}:Mine")(seed=0)


@pytest.fixture(params=["fork", "spawn", "forkserver"])
def how(request: pytest.FixtureRequest) -> Iterator[str]:
    """How this process starts others, put back after."""
    if request.param not in multiprocessing.get_all_start_methods():
        pytest.skip("not on this system")
    before = multiprocessing.get_start_method()
    multiprocessing.set_start_method(request.param, force=True)
    yield request.param
    multiprocessing.set_start_method(before, force=True)


def test_the_workers_find_the_file_and_its_neighbours(task: Any, how: str) -> None:
    splits = task.splits()
    alone = list(Feed(splits.train, 4, seed=3).epoch(0))
    with_workers = list(Feed(splits.train, 4, seed=3, workers=2).epoch(0))
    assert all(map(torch.equal, alone, with_workers))
    assert [b.shape for b in Feed(splits.val).epoch(0)] == [(4, 2)] * 3


def test_what_cannot_be_sent_to_a_worker_is_said(task: Any, how: str) -> None:
    feed = Feed(task.local(), 4, workers=1)
    if how == "fork":
        assert len(list(feed.epoch(0))) == 3
        return
    with pytest.raises(DataError, match=r"cannot be sent to worker processes .*or write workers=0"):
        list(feed.epoch(0))


def test_a_worker_that_is_killed_is_said(task: Any) -> None:
    with pytest.raises(DataError, match=r"a DataLoader worker died .*: use fewer workers"):
        list(Feed(task.fatal(), 4, workers=1).epoch(0))
