"""One process at a time trains in a run directory, and a dead one holds nothing."""

from __future__ import annotations

import errno
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trueloop.checkpoint import LOCK, claimed
from trueloop.errors import RunError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no POSIX locks")


class Child:
    """A forked process that does `work`, says so, and waits to be let go, or to be killed."""

    def __init__(self, work: Callable[[], Any]) -> None:
        ready, said = os.pipe()
        waiting, self._let_go = os.pipe()
        self.pid = os.fork()
        if not self.pid:
            os.close(self._let_go)
            try:
                self._do(work, said, waiting)
            finally:
                os._exit(1)
        os.close(said)
        os.close(waiting)
        self.said = os.read(ready, 1000).decode()
        os.close(ready)

    def _do(self, work: Callable[[], Any], said: int, waiting: int) -> None:
        try:
            with work():
                os.write(said, b"in")
                os.read(waiting, 1)
        except RunError as error:
            os.write(said, str(error).encode())
        os._exit(0)

    def end(self, number: int | None = None) -> None:
        if number is not None:
            os.kill(self.pid, number)
        os.close(self._let_go)
        os.waitpid(self.pid, 0)


def test_a_second_process_is_told_who_is_there(tmp_path: Path) -> None:
    first = Child(lambda: claimed(tmp_path))
    assert first.said == "in"
    with pytest.raises(RunError) as e, claimed(tmp_path):
        pass
    first.end()
    busy = f"{tmp_path} is being trained by a different process (pid {first.pid} on "
    assert busy in str(e.value)
    assert str(e.value).endswith("): wait for its end, or stop it")
    with claimed(tmp_path):
        assert Child(lambda: claimed(tmp_path)).said.startswith(f"{tmp_path} is being trained")
    assert not list(tmp_path.iterdir())


def test_a_killed_process_holds_nothing(tmp_path: Path) -> None:
    first = Child(lambda: claimed(tmp_path))
    first.end(signal.SIGKILL)
    assert (tmp_path / LOCK).exists()
    with claimed(tmp_path):
        pass


def test_a_worker_that_outlives_its_parent_holds_nothing(tmp_path: Path) -> None:
    """As the workers of a DataLoader do, when the process that trains is killed."""
    pids, said = os.pipe()
    trainer = os.fork()
    if not trainer:
        with claimed(tmp_path):
            worker = os.fork()
            if worker:
                os.write(said, str(worker).encode())
            while True:
                signal.pause()
    worker = int(os.read(pids, 20))
    with pytest.raises(RunError, match=f"pid {trainer} on"), claimed(tmp_path):
        pass
    os.kill(trainer, signal.SIGKILL)
    os.waitpid(trainer, 0)
    os.kill(worker, 0)  # it is there
    with claimed(tmp_path):
        pass
    os.kill(worker, signal.SIGKILL)


def test_what_a_child_inherits_is_no_claim_of_its_own(tmp_path: Path) -> None:
    with claimed(tmp_path):
        child = Child(lambda: claimed(tmp_path))
        assert child.said.startswith(f"{tmp_path} is being trained by a different process")
        child.end()
        assert Child(lambda: claimed(tmp_path)).said != "in", "its end has let nobody in"


def test_one_process_may_hold_it_several_times(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    with claimed(tmp_path):
        with claimed(Path()):
            pass
        other = Child(lambda: claimed(tmp_path))
        assert other.said != "in"
        other.end()
    assert not (tmp_path / LOCK).exists()


def test_a_file_system_without_locks_lets_everybody_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import fcntl

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "lockf", refuse)
    with claimed(tmp_path):
        child = Child(lambda: claimed(tmp_path))
        assert child.said == "in"
        child.end()


def test_where_nothing_can_be_written_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="cannot write"), claimed(tmp_path / "nowhere"):
        pass
