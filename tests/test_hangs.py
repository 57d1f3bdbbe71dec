"""A run in which nothing moves: what is written, and which rank is named."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import pytest
import torch

import trueloop
from on_ranks import Ending, endings
from trueloop import ranks
from trueloop.errors import ConfigError
from trueloop.ranks.heartbeat import Beat
from trueloop.stopping import HangWatch
from trueloop.stopping.hang import HangThreshold
from trueloop.stopping.stuck_rank import verdict

SHORT = 1.5 / 60


def _beat(rank: int, **fields: Any) -> Beat:
    words: dict[str, Any] = {
        "count": 1, "pid": 100 + rank, "host": "node:", "started": "", "phase": "training",
        "epoch": 0, "batch": 4, "update": 4, "pending": None, "still": 9.0, "calls": {"0": 7},
    }  # fmt: skip
    return Beat(rank, **(words | fields))


@pytest.mark.parametrize(
    ("fields", "silent", "rank", "words"),
    [
        ([{}, {}], {1: "stopped"}, 1, "is stopped by a signal: kill -CONT 101"),
        ([{}, {}], {1: "elsewhere"}, 1, "its machine or the network is down"),
        ([{}, {}, {}], {2: "alive"}, 2, "py-spy dump --pid 102"),
        ([{"calls": {"0": 7}, "pending": "the gradients"}, {"calls": {"0": 6}}], {}, 1,
         "has not reached what rank 0 is in (the gradients); it is at: training"),
        ([{}, {"phase": "waiting for data"}, {}], {}, 1, "is at: waiting for data"),
        ([{}, {}, {"update": 3}], {}, 2, "has made less progress than the others"),
        ([{"pending": "a"}, {"pending": "b"}], {}, 0, "wait for different things"),
        ([{}, {}], {}, 0, "all ranks are at the same place"),
        ([{"phase": "waiting for data"}], {}, 0, "the run is at: waiting for data"),
    ],
)  # fmt: skip
def test_the_rank_that_the_others_wait_for(
    fields: list[dict[str, Any]], silent: dict[int, str], rank: int, words: str
) -> None:
    beats = {each: _beat(each, **more) for each, more in enumerate(fields)}
    found, message = verdict(beats, silent)
    assert found == rank
    assert words in message


def test_a_rank_that_has_never_given_a_sign_of_life() -> None:
    assert verdict({0: _beat(0)}, {1: "absent"})[0] == 1


def test_the_default_follows_the_run() -> None:
    pace = HangThreshold(None)
    assert pace.limit() == 20 * 60, "it may compile"
    pace.updates, pace.longest = 1, 0.1
    assert pace.limit() == 5 * 60
    pace.longest = 12.0
    assert pace.limit() == 10 * 60
    pace.longest = 100.0
    assert pace.limit() == 20 * 60
    assert HangThreshold(3.0).limit() == 180
    pace.longest = 0.1
    assert pace.limit("saving") == 20 * 60, "a large state, a slow disk"


def test_wrong_minutes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="hang_minutes"):
        HangWatch(tmp_path, minutes=0)
    with pytest.raises(ConfigError, match="hang_exit"):
        HangWatch(tmp_path, exits=1)  # type: ignore[arg-type]
    for options in ({"minutes": 5}, {"exits": True}):
        with pytest.raises(ConfigError, match="without a run directory"):
            HangWatch(None, **options)


def _where_it_hangs(seconds: float) -> None:
    time.sleep(seconds)


def test_one_process_that_waits_for_data(tmp_path: Path, capfd: Any) -> None:
    ranks.here.move("waiting for data", epoch=1, batch=5, update=9)
    with HangWatch(tmp_path, minutes=0.3 / 60):
        _where_it_hangs(1.0)
        ranks.here.move("training")
        _where_it_hangs(0.8)
    first, second = sorted(tmp_path.glob("hangs/*")), capfd.readouterr().err.splitlines()
    summary = (first[0] / "summary.txt").read_text()
    assert "the run is at: waiting for data, epoch 2, batch 5, update 9" in summary
    text = (first[0] / "rank-0.txt").read_text()
    assert "_where_it_hangs" in text
    assert "test_one_process_that_waits_for_data" in text
    assert second[0].startswith("trueloop: warning: nothing has moved for ")
    assert len(second) == 2, "once for each time that it hangs"


def test_a_run_that_moves_does_not_hang(tmp_path: Path, capfd: Any) -> None:
    with HangWatch(tmp_path, minutes=0.5 / 60):
        for _ in range(10):
            time.sleep(0.1)
            ranks.here.move("training")
    assert not list(tmp_path.glob("hangs/*"))
    assert not capfd.readouterr().err


def _wait_for_ever(folder: str) -> None:
    with HangWatch(Path(folder), minutes=0.3 / 60, exits=True):
        threading.Event().wait()


def test_one_process_ends_if_that_is_asked_for(tmp_path: Path) -> None:
    (ended,) = endings(1, _wait_for_ever, str(tmp_path))
    assert ended.status == 1
    assert ended.stderr.startswith("trueloop: error: nothing has moved for ")


def _train(folder: str, kind: str, exits: bool) -> None:
    """Updates, each with a sum over all ranks; rank 1 comes to no end of its fifth."""
    with (
        ranks.joined(torch.device("cpu")),
        HangWatch(Path(folder), minutes=SHORT, exits=exits),
    ):
        for update in range(1, 1000):
            if ranks.rank() == 1 and update == 5:
                ranks.here.move("waiting for data", batch=update, update=update)
                if kind == "stopped":
                    os.kill(os.getpid(), signal.SIGSTOP)
                elif kind == "data":
                    _where_it_hangs(6.0)
                if not exits:
                    return
            ranks.here.move("training", batch=update, update=update)
            with ranks.waiting("the gradients of all ranks"):
                torch.distributed.all_reduce(torch.ones(2))
            time.sleep(0.01)


def _check_report(folder: Path, ended: list[Ending], words: str) -> Path:
    assert ended[0].status == 1
    said = "".join(each.stderr for each in ended)
    assert said.count("\n") == 1, said
    assert said.startswith("trueloop: error: nothing has moved for ")
    assert words in said
    (found,) = folder.glob("hangs/*")
    assert words in (found / "summary.txt").read_text()
    text = (found / "rank-0.txt").read_text()
    assert "training, epoch 1, batch 5, update 5, in: the gradients of all ranks" in text
    assert "all_reduce" in text
    return found


def test_a_rank_that_waits_for_data_is_named(tmp_path: Path) -> None:
    ended = endings(2, _train, str(tmp_path), "data", True)
    words = "has not reached what rank 0 is in (the gradients of all ranks); it is at: waiting"
    found = _check_report(tmp_path, ended, words)
    assert "_where_it_hangs" in (found / "rank-1.txt").read_text()
    assert "all_reduce" in (found / "rank-0.flight.json").read_text()


def _kill_the_stopped(pids: list[int]) -> None:
    """Once the other rank has ended."""
    while Path(f"/proc/{pids[0]}").exists():
        time.sleep(0.1)
    os.kill(pids[1], signal.SIGKILL)


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads a process's state")
def test_a_stopped_rank_is_named(tmp_path: Path) -> None:
    ended = endings(2, _train, str(tmp_path), "stopped", True, act=_kill_the_stopped)
    found = _check_report(tmp_path, ended, "is stopped by a signal: kill -CONT ")
    assert "rank 1 has written no stacks" in (found / "summary.txt").read_text()
    assert ended[0].seconds < 15


class _Slow(torch.utils.data.Dataset[Any]):
    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        if index == 4:
            _where_it_hangs(1.2)
        return torch.ones(2), torch.ones(1)


def test_fit_writes_down_where_a_run_hangs(tmp_path: Path, capfd: Any) -> None:
    model = torch.nn.Linear(2, 1)
    step = trueloop.Step(
        model,
        trueloop.optimizers.sgd(model, lr=0.1),
        trueloop.supervised(torch.nn.MSELoss()),
    )
    run = trueloop.Run.create(tmp_path / "run", config={})
    trueloop.fit(step, trueloop.Feed(_Slow(), 2), epochs=1, run=run, hang_minutes=0.5 / 60)
    (found,) = (tmp_path / "run").glob("hangs/*")
    assert "waiting for data, epoch 1, batch 1, update 2" in (found / "summary.txt").read_text()
    assert "_where_it_hangs" in (found / "rank-0.txt").read_text()
    assert "the run is at: waiting for data" in capfd.readouterr().err
