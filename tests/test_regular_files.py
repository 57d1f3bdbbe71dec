"""Reading regular files alone, and no more of them than was expected."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from trueloop.files import (
    NotAFileError,
    TooLargeError,
    cannot_read,
    open_regular,
    read_bytes,
    read_text,
    size,
    special_kind,
)


@contextmanager
def bound_socket(path: Path) -> Iterator[Path]:
    """A Unix socket in the file system; its name may be of 100 characters at most."""
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
            yield path
    finally:
        os.chdir(here)


def test_a_regular_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes("grün".encode())
    assert read_bytes(path) == "grün".encode()
    assert read_text(str(path), most=5) == "grün"
    link = tmp_path / "link"
    link.symlink_to(path)
    assert read_text(link) == "grün"
    assert special_kind(path) is special_kind(tmp_path) is special_kind(tmp_path / "none") is None


def test_a_fifo_is_named_and_not_waited_for(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    assert special_kind(fifo) == "a FIFO"
    for mode in ("rb", "ab", "r+b"):
        with pytest.raises(NotAFileError, match="it is a FIFO, not a regular file"):
            open_regular(fifo, mode)
    with pytest.raises(NotAFileError) as raised:
        read_bytes(fifo)
    assert raised.value.kind == "a FIFO"
    assert cannot_read(fifo, raised.value) == (
        f"cannot read {fifo} (it is a FIFO, not a regular file): give a regular file"
    )


def test_a_fifo_that_takes_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look and the opening."""
    path = tmp_path / "a"
    path.touch()
    regular = os.stat(path)
    path.unlink()
    os.mkfifo(path)
    monkeypatch.setattr(os, "stat", lambda *_, **__: regular)
    with pytest.raises(NotAFileError):
        open_regular(path)


def test_devices_sockets_and_folders_are_named(tmp_path: Path) -> None:
    with bound_socket(tmp_path / "s") as path:
        assert special_kind(path) == "a socket"
        with pytest.raises(NotAFileError, match="it is a socket"):
            read_bytes(path)
    assert special_kind("/dev/zero") == "a character device"
    with pytest.raises(NotAFileError, match="it is a character device"):
        read_bytes("/dev/zero")
    with pytest.raises(NotAFileError, match="it is a folder"):
        read_bytes(tmp_path)
    assert special_kind(tmp_path) is None


def test_no_more_is_read_than_was_expected(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(bytes(3000))
    assert len(read_bytes(path, most=3000)) == 3000
    with pytest.raises(TooLargeError) as raised:
        read_bytes(path, most=2999)
    assert cannot_read(path, raised.value) == (
        f"cannot read {path} (it is larger than 2.999 kB): check that it is the file you mean"
    )


def test_a_missing_file_and_one_that_is_written(tmp_path: Path) -> None:
    path = tmp_path / "new"
    with pytest.raises(FileNotFoundError) as raised:
        read_bytes(path)
    assert cannot_read(path, raised.value).endswith("(No such file or directory): check the path")
    with open_regular(path, "ab", buffering=0) as file:
        file.write(b"one")
    assert path.read_bytes() == b"one"


def test_sizes_in_words() -> None:
    assert [size(n) for n in (7, 64_000_000, 1500, 2_000_000_000)] == [
        "7 bytes",
        "64 MB",
        "1.5 kB",
        "2 GB",
    ]
