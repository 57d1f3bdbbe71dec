"""A rank that dies or cannot write while a checkpoint is written: whole or absent, on all ranks."""

from __future__ import annotations

import errno
import os
import time
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from on_ranks import on_ranks
from trueloop import ranks
from trueloop.checkpoint import Checkpoints, capture, load_checkpoint, store
from trueloop.errors import RunError


def make() -> tuple[trueloop.Step, trueloop.Feed]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 64), nn.Linear(64, 64))
    step = trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), 0.1),
        trueloop.supervised(nn.MSELoss()),
        parallel="ddp",
    )
    return step, trueloop.Feed((torch.rand(8, 8), torch.rand(8, 64)), 4)


def save(saved: Checkpoints, update: int) -> None:
    step, feed = make()
    step.updates = update
    saved.save(capture(step, feed), (0, 0, update))


STAGES = ["folder made", "planned", "shards written", "state written", "manifest written",
          "manifest flushed", "renamed", "done"]  # fmt: skip


def die_at(folder: Path, stage: str, rank: int) -> None:
    """Save once, and again; in the second save this rank dies at the stage, as by SIGKILL."""
    saved = Checkpoints(folder)
    save(saved, 1)
    saved.wait()

    def reached(name: str) -> None:
        if name == stage and ranks.rank() == rank:
            os._exit(9)

    store.reached = reached
    save(saved, 2)
    with pytest.raises(RunError, match="a different rank has ended"):
        saved.wait()
    (folder / f"told by {ranks.rank()}").touch()
    os._exit(0)


@pytest.mark.parametrize(
    ("stage", "rank"), [(stage, 0) for stage in STAGES] + [("planned", 1), ("shards written", 1)]
)
def test_a_rank_that_dies_leaves_the_old_one_or_the_new_one(
    tmp_path: Path, stage: str, rank: int
) -> None:
    with pytest.raises(AssertionError, match="died without a word"):
        on_ranks(2, die_at, tmp_path, stage, rank)
    committed = stage in ("renamed", "done")
    assert len(store.names_in(tmp_path)) == 1 + committed
    assert (tmp_path / f"told by {1 - rank}").exists(), "the other rank knows"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        state = load_checkpoint(tmp_path)
    assert state["step"]["counters"][2] == 1 + committed


def full_disk(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def save_and_poll(saved: Checkpoints, calls: list[int]) -> None:
    """Without waiting for the write: the ranks learn of it at the same one of these calls."""
    save(saved, 2)
    for call in range(1000):
        time.sleep(0.001 * ranks.rank())
        calls.append(call)
        saved.poll()


def write_on_a_full_disk(folder: Path, asynchronous: bool) -> None:
    """Rank 1's disk is full for a while; every rank learns of it at the same place."""
    from trueloop.checkpoint.dcp import ShardWriter

    write = ShardWriter.write_data
    says = r"u000000002 \(No space left on device, on rank 1\): free some space"
    saved = Checkpoints(folder, asynchronous=asynchronous)
    save(saved, 1)
    saved.wait()
    if ranks.rank() == 1:
        ShardWriter.write_data = full_disk  # type: ignore[method-assign]
    with pytest.raises(RunError, match=says):
        save_and_poll(saved, calls := [])
    if asynchronous:
        assert len(set(ranks.gathered(len(calls)))) == 1
    going_on = Checkpoints(folder, asynchronous=asynchronous, on_error="continue")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        save(going_on, 2)
        save(going_on, 3)
        going_on._settle()
        ShardWriter.write_data = write  # type: ignore[method-assign]
        save(going_on, 4)
        going_on.wait()
    assert going_on.unsaved is None
    texts = [str(one.message) for one in caught if one.category is RuntimeWarning]
    if ranks.is_main():
        assert len(texts) == 2
        assert "the run continues without this checkpoint" in texts[0]
        assert "checkpoints can be written again; 2 were lost" in texts[1]
        assert [name[-1] for name in store.names_in(folder)] == ["1", "4"]
        assert not [entry for entry in folder.iterdir() if entry.name.endswith(".tmp")]
    else:
        assert not texts


@pytest.mark.parametrize("asynchronous", [True, False])
def test_what_one_rank_cannot_write_is_missing_on_all(tmp_path: Path, asynchronous: bool) -> None:
    on_ranks(2, write_on_a_full_disk, tmp_path, asynchronous)


def save_twice(folder: Path) -> None:
    saved = Checkpoints(folder)
    save(saved, 1)
    save(saved, 2)
    saved.wait()


def load_beside(folder: Path) -> tuple[int, list[str], str]:
    """Which checkpoint is gone on from, what is warned of, and what an error says."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        try:
            update, error = load_checkpoint(folder)["step"]["counters"][2], ""
        except RunError as raised:
            update, error = 0, str(raised)
    return update, [str(one.message) for one in caught if one.category is RuntimeWarning], error


@pytest.mark.parametrize("file", ["__0_0.distcp", "__1_0.distcp", ".metadata", "state.pt"])
def test_all_ranks_go_back_to_the_same_good_one(tmp_path: Path, file: str) -> None:
    """Whichever of them has found the damage."""
    on_ranks(2, save_twice, tmp_path)
    older, newest = store.names_in(tmp_path)
    content = bytearray((tmp_path / newest / file).read_bytes())
    content[-20] ^= 1
    (tmp_path / newest / file).write_bytes(content)
    main, other = on_ranks(2, load_beside, tmp_path)
    assert (main[0], other[0], other[1]) == (1, 1, [])
    assert f"{newest}/{file} is damaged" in main[1][0]
    assert f"going back to {older}" in main[1][0]
    with pytest.warns(RuntimeWarning, match="is damaged"):
        assert load_checkpoint(tmp_path)["step"]["counters"][2] == 1
    (tmp_path / older / file).unlink()
    for update, _, error in on_ranks(2, load_beside, tmp_path):
        assert not update
        assert f"{newest}/{file} is damaged" in error
