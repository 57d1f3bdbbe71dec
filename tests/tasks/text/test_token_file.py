"""Token ids in files, against the arrays that they were written from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, strategies as st

from trueloop.errors import DataError
from trueloop.tasks.text.token_file import Tokens, dtype_for, open_tokens, write_tokens

KINDS = ("uint8", "uint16", "uint32", "int32", "int64")


def ids(count: int) -> np.ndarray:
    return np.random.default_rng(0).integers(0, 200, count)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("ending", [".bin", ".npy"])
def test_a_file_gives_what_was_written(tmp_path: Path, kind: str, ending: str) -> None:
    array = ids(1000)
    path = tmp_path / f"x{ending}"
    if ending == ".npy":
        np.save(path, array.astype(kind))
    else:
        with path.open("wb") as file:
            assert write_tokens(file, [array[:300], array[300:]], kind) == 1000
    tokens = open_tokens(path, kind if ending == ".bin" else None)
    assert len(tokens) == 1000
    assert np.array_equal(tokens.read(17, 40), array[17:40])
    starts = np.array([0, 990, 5, 5])
    found = tokens.part(100, 1000).gather(starts[:1], 10)
    assert found.dtype == np.int64
    assert np.array_equal(found[0], array[100:110])
    assert np.array_equal(tokens.gather(starts, 10), [array[s : s + 10] for s in starts])
    assert len(tokens.part(3, 9).part(2, 4)) == 2


def test_a_file_stays_outside_of_the_process(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    tokens = open_tokens(path, "uint16")
    before = resident()
    draws = np.random.default_rng(0)
    for _ in range(200):
        assert not tokens.gather(draws.integers(0, len(tokens) - 512, 64), 512).any()
    assert resident() - before < 8 << 20


def resident() -> int:
    status = Path("/proc/self/status")
    if not status.exists():
        pytest.skip("no /proc here")
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmRSS"))
    return 1024 * int(line.split()[1])


def test_a_file_that_becomes_shorter_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    ids(1000).astype("uint16").tofile(path)
    tokens = open_tokens(path, "uint16")
    os.truncate(path, 1500)
    assert tokens.read(740, 750).tolist() == ids(1000)[740:750].tolist()
    with pytest.raises(DataError, match=r"x\.bin has become shorter since the run began: restore"):
        tokens.gather(np.array([0, 745]), 10)


def test_without_reads_at_a_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x.bin"
    ids(1000).astype("uint16").tofile(path)
    monkeypatch.delattr(os, "pread")
    assert open_tokens(path, "uint16").read(17, 99).tolist() == ids(1000)[17:99].tolist()


@given(st.integers(1, 40), st.integers(0, 39), st.sampled_from([-1, 7, 9]))
def test_an_id_outside_the_vocabulary_is_named(count: int, at: int, wrong: int) -> None:
    array = np.arange(count) % 7
    array[at % count] = wrong
    tokens = Tokens(array, vocab_size=7).part(0, count)
    with pytest.raises(DataError, match=rf"the array contains the id {wrong} at position"):
        tokens.probe()
    with pytest.raises(
        DataError, match=rf"contains the id {wrong} at position {at % count}, outside"
    ):
        tokens.part(at % count, count).read(0, 1)


def test_a_file_of_another_kind_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    ids(100_000).astype("uint16").tofile(path)
    tokens = open_tokens(path, "uint32", vocab_size=50257)
    with pytest.raises(DataError, match="outside the vocabulary of 50,257 ids: use the tokenizer"):
        tokens.probe()


def test_broken_files(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"x\.bin is empty: give a file of token ids"):
        open_tokens(path, "uint16")
    path.write_bytes(b"abc")
    with pytest.raises(DataError, match="has 3 bytes, not a multiple of the 2 of an id as uint16"):
        open_tokens(path, "uint16")
    with pytest.raises(DataError, match=r"cannot read .*none\.bin .*: check the path"):
        open_tokens(tmp_path / "none.bin", "uint16")
    fifo = tmp_path / "fifo.bin"
    os.mkfifo(fifo)
    with pytest.raises(DataError, match="it is a FIFO, not a regular file"):
        open_tokens(fifo, "uint16")


def test_broken_numpy_files(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(b"no header at all")
    with pytest.raises(DataError, match=r"x\.npy is not a \.npy file"):
        open_tokens(path)
    np.save(path, np.zeros((3, 3), np.uint16))
    with pytest.raises(DataError, match=r"has uint16 numbers of shape \(3, 3\): give token ids"):
        open_tokens(path)
    np.save(path, np.zeros(3))
    with pytest.raises(DataError, match="has float64 numbers"):
        open_tokens(path)
    np.save(path, np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="has object numbers"):
        open_tokens(path)


def test_dtypes() -> None:
    assert [dtype_for(size) for size in (256, 257, 65536, 65537)] == [
        "uint8", "uint16", "uint16", "uint32"
    ]  # fmt: skip
