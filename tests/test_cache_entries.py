"""What is kept from run to run: whole or absent, within its budget, the oldest leaves first."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trueloop import cache

KEYS = [letter * 32 for letter in "abcd"]


def put(entry: Path, size: int, used: float) -> Path:
    with cache.publishing(entry) as new, cache.flushed(new / "part") as file:
        file.write(bytes(size))
    os.utime(entry, (used, used))
    return entry


def test_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(cache.VARIABLE, raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert cache.directory("kind") == tmp_path / ".cache/trueloop/kind"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache.directory("kind") == tmp_path / "Library/Caches/trueloop/kind"
    monkeypatch.setenv("XDG_CACHE_HOME", "not/absolute")
    assert cache.directory("kind") == tmp_path / "Library/Caches/trueloop/kind"
    monkeypatch.setenv("XDG_CACHE_HOME", "/xdg")
    assert cache.directory("kind") == Path("/xdg/trueloop/kind")
    monkeypatch.setenv(cache.VARIABLE, "~/mine")
    assert cache.directory("kind") == tmp_path / "mine/kind"
    assert cache.directory("kind", "/given") == Path("/given/kind")


def test_an_entry_is_whole_or_absent(tmp_path: Path) -> None:
    entry = tmp_path / KEYS[0]

    def interrupted() -> None:
        with cache.publishing(entry) as new:
            (new / "part").write_bytes(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert list(tmp_path.iterdir()) == []
    put(entry, 10, 1)
    put(entry, 20, 1)  # one that was found not to be whole is replaced
    assert (entry / "part").stat().st_size == 20
    assert list(tmp_path.iterdir()) == [entry]


def test_what_a_killed_writer_left_is_removed(tmp_path: Path) -> None:
    mine, other = tmp_path / KEYS[0], tmp_path / KEYS[1]
    left = [tmp_path / f"{entry.name}.new-host-1-1.tmp" for entry in (mine, other)]
    for folder in left:
        folder.mkdir()
        (folder / "part").write_bytes(bytes(5))
    with cache.locked(mine) as alone:
        assert alone
        put(mine, 1, 1)
        assert [folder.exists() for folder in left] == [False, True]
        assert cache.refusal(mine, 1, 100) is None
    assert not left[1].exists()


def test_somebody_else_is_waited_for_and_not_swept(tmp_path: Path) -> None:
    entry = tmp_path / KEYS[0]
    code = (
        "import sys; from pathlib import Path; from trueloop import cache\n"
        "entry = Path(sys.argv[1])\n"
        "with cache.locked(entry), cache.publishing(entry) as new:\n"
        "    print('writing', flush=True); sys.stdin.readline()\n"
        "    (new / 'part').write_bytes(b'whole')\n"
    )
    command = [sys.executable, "-c", code, str(entry)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as writer:
        assert writer.stdin is not None
        assert writer.stdout is not None
        writer.stdout.readline()
        assert cache.refusal(tmp_path / KEYS[1], 1, 100) is None
        assert len(list(tmp_path.glob("*.tmp"))) == 1

        def let_go() -> None:
            assert writer.stdin is not None
            assert not entry.exists()
            writer.stdin.write(b"\n")
            writer.stdin.flush()

        with cache.locked(entry, let_go) as alone:
            assert alone
            assert (entry / "part").read_bytes() == b"whole"


def test_the_longest_unused_leave_for_a_new_one(tmp_path: Path) -> None:
    entries = [put(tmp_path / key, 100, used) for key, used in zip(KEYS[:3], (3, 1, 2))]  # noqa: B905
    (tmp_path / "notes").mkdir()  # is nobody's entry
    new = tmp_path / KEYS[3]
    assert cache.refusal(new, 100, 400) is None
    assert all(entry.exists() for entry in entries)
    cache.touch(entries[1])
    assert cache.refusal(new, 150, 400) is None
    assert [entry.exists() for entry in entries] == [True, True, False]
    assert (tmp_path / "notes").exists()
    reason = cache.refusal(new, 500, 400)
    assert reason == "they take 500 bytes, and the budget is 400 bytes"
    assert [entry.exists() for entry in entries] == [True, True, False]


def test_the_disk_is_not_filled(tmp_path: Path) -> None:
    assert "are free on that disk" in str(cache.refusal(tmp_path / KEYS[0], 10**18, 10**19))
