"""The index: kept, taken again, made anew for what changed; and shards that are damaged or gone."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
import tarfile
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shard_files import rows, write_arrow, write_parquet, write_tar

from trueloop.errors import ConfigError, DataError
from trueloop.feed import Feed, Shards
from trueloop.feed.shards import index as indices
from trueloop.feed.shards.storage import File, Storage


@pytest.fixture
def examined(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shards that were looked at, by name."""
    seen: list[str] = []

    def spied(storage: Storage, file: File) -> Any:
        seen.append(Path(file.path).name)
        return indices.columnar.examine_parquet(storage, file)

    monkeypatch.setitem(indices.EXAMINE, "parquet", spied)
    return seen


def index_files(folder: Path) -> list[Path]:
    return sorted(folder.glob(".trueloop-index-*.npz"))


def test_it_is_made_once_and_stands_beside_the_shards(tmp_path: Path, examined: list[str]) -> None:
    write_parquet(tmp_path, [5, 6, 7])
    assert len(Shards(tmp_path)) == 18
    assert sorted(examined) == ["000.parquet", "001.parquet", "002.parquet"]
    assert len(index_files(tmp_path)) == 1
    examined.clear()
    again = Shards(str(tmp_path))
    assert (len(again), again[17]["x"]) == (18, 17)
    assert not examined
    (tmp_path / "_SUCCESS").touch()
    Shards(tmp_path)
    assert not examined


def test_only_what_has_changed_is_looked_at_again_and_that_is_said(
    tmp_path: Path, examined: list[str]
) -> None:
    write_parquet(tmp_path, [5, 6, 7])
    Shards(tmp_path)
    examined.clear()
    pq.write_table(rows(0, 9), tmp_path / "001.parquet")
    pq.write_table(rows(0, 2), tmp_path / "003.parquet")
    (tmp_path / "000.parquet").unlink()
    with pytest.warns(RuntimeWarning, match=r"2 of 3 shards are new or have changed .* 1 are gone"):
        shards = Shards(tmp_path)
    assert sorted(examined) == ["001.parquet", "003.parquet"]
    assert len(shards) == 9 + 7 + 2
    assert [int(shards[k]["x"]) for k in (0, 8, 9, 17)] == [0, 8, 11, 1]


@pytest.mark.parametrize("content", [b"", b"PK\3\4 not an index", None])
def test_an_index_that_is_damaged_is_made_again(tmp_path: Path, content: bytes | None) -> None:
    write_parquet(tmp_path, [5, 6])
    Shards(tmp_path)
    (path,) = index_files(tmp_path)
    path.write_bytes(path.read_bytes()[:-100] if content is None else content)
    assert len(Shards(tmp_path)) == 11
    assert path.read_bytes()[:2] == b"PK"


def test_a_folder_that_cannot_be_written_leaves_the_index_to_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_parquet(tmp_path / "data", [5])
    monkeypatch.setenv("TRUELOOP_CACHE", str(tmp_path / "cache"))
    written = indices.write_whole

    def refuse(path: Path, content: bytes) -> None:
        if path.parent.name in refused:
            raise PermissionError(13, "Permission denied")
        written(path, content)

    monkeypatch.setattr(indices, "write_whole", refuse)
    refused = {"data"}
    Shards(tmp_path / "data")
    assert len(list((tmp_path / "cache" / "shards").glob("*.npz"))) == 1
    refused.add("elsewhere")
    with pytest.raises(ConfigError, match=r"cannot write the index .*Permission denied.*index="):
        Shards(tmp_path / "data", index=tmp_path / "elsewhere" / "i.npz")


def made_in_a_process(folder: Path) -> int:
    return len(Shards(folder))


def test_several_processes_make_it_at_once(tmp_path: Path) -> None:
    write_parquet(tmp_path, [3] * 20)
    with multiprocessing.get_context("fork").Pool(4) as pool:
        assert pool.map(made_in_a_process, [tmp_path] * 4) == [60] * 4
    assert len(index_files(tmp_path)) == 1
    assert not list(tmp_path.glob("*.tmp"))


def test_globs_braces_and_lists_name_shards(tmp_path: Path) -> None:
    write_parquet(tmp_path, [1, 2, 3, 4])
    assert len(Shards(tmp_path / "00[12].parquet")) == 5
    assert len(Shards(str(tmp_path / "{001..003}.parquet"))) == 9
    assert len(Shards([tmp_path / "003.parquet", tmp_path / "000.parquet"])) == 5
    assert Shards([tmp_path / "003.parquet", tmp_path / "000.parquet"])[0]["x"] == 6
    with pytest.raises(DataError, match=r"cannot read .*004\.parquet .*check the path"):
        Shards(str(tmp_path / "{003..004}.parquet"))
    with pytest.raises(DataError, match="no shard is in"):
        Shards(tmp_path / "*.tar")
    (tmp_path / "notes.txt").touch()
    assert len(Shards(tmp_path)) == 10
    write_tar(tmp_path / "a.tar", [{"txt": b""}])
    with pytest.raises(DataError, match="of several formats"):
        Shards(tmp_path)


def test_what_is_no_shard_is_said(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").touch()
    with pytest.raises(
        DataError, match=r"notes\.txt is not a shard: give files that end with \.tar"
    ):
        Shards(tmp_path)
    with tarfile.open(tmp_path / "a.tar.gz", "w:gz"):
        pass
    with pytest.raises(DataError, match=r"a\.tar\.gz is compressed as a whole.*gunzip"):
        Shards(tmp_path / "a.tar.gz")
    write_tar(tmp_path / "empty.tar", [])
    empty = Shards(tmp_path / "empty.tar")
    with pytest.raises(DataError, match="has no samples"):
        Feed(empty, 4)
    stream = pa.ipc.new_stream(str(tmp_path / "a.arrow"), rows(0, 1).schema)
    stream.close()
    with pytest.raises(DataError, match=r"a\.arrow is not an Arrow file, perhaps a stream"):
        Shards(tmp_path / "a.arrow")


@pytest.mark.parametrize("form", ["parquet", "arrow", "tar"])
@pytest.mark.parametrize("left", [0, 5, 700])
def test_a_shard_that_was_not_written_to_its_end_is_named(
    tmp_path: Path, form: str, left: int
) -> None:
    if form == "tar":
        write_tar(tmp_path / "000.tar", [{"bin": b"x" * 300}] * 3)
    else:
        {"parquet": write_parquet, "arrow": write_arrow}[form](tmp_path, [40])
    path = tmp_path / f"000.{form}"
    path.write_bytes(path.read_bytes()[:left])
    if form == "tar" and left == 0:
        assert len(Shards(path)) == 0
        return
    said = "(is damaged at byte|cannot be read|is not an Arrow file)"
    with pytest.raises(DataError, match=rf"the shard .*000\.{form} {said}"):
        Shards(path)


def test_a_flipped_bit_in_a_header_is_named_with_its_offset(tmp_path: Path) -> None:
    path = tmp_path / "a.tar"
    write_tar(path, [{"cls": b"1"}, {"cls": b"2"}])
    shards = Shards(path, fields=("cls",))
    stamp = path.stat()
    content = bytearray(path.read_bytes())
    content[1024 + 3] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))  # as a bad disk would
    with pytest.raises(DataError, match=r"a\.tar is damaged at byte 1024 \(a tar header has the"):
        shards[1]


def test_damage_inside_a_row_group_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(rows(0, 4000), path, row_group_size=1000, compression="zstd")
    shards = Shards(path)
    stamp = path.stat()
    content = bytearray(path.read_bytes())
    content[1000:3000] = bytes(2000)
    path.write_bytes(content)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    with pytest.raises(DataError, match=r"the shard .*a\.parquet cannot be read \(\w+: .*write it"):
        shards[10]


@pytest.mark.parametrize("workers", [0, 1])
def test_a_shard_that_vanishes_or_changes_during_training_ends_it(
    tmp_path: Path, workers: int
) -> None:
    write_parquet(tmp_path, [64] * 4)
    shards = Shards(tmp_path, window=16)
    batches = Feed(shards, 8, workers=workers).epoch(0)
    next(batches)
    (tmp_path / "003.parquet").unlink()
    with pytest.raises(DataError, match=r"003\.parquet is not there: put it back and resume"):
        list(batches)
    pq.write_table(rows(0, 2), tmp_path / "002.parquet")
    with pytest.raises(DataError, match=r"002\.parquet has changed since it was indexed \(it has"):
        list(Feed(shards, 8, workers=workers).epoch(0))


def read_and_die(folder: Path, log: Path, last: int) -> None:
    """Writes each batch and the feed's state after it, until the process kills itself."""
    feed = Feed(Shards(folder, window=64), 8, shuffle=True, seed=6)
    if log.exists():
        feed.load_state_dict(json.loads(log.read_text().splitlines()[-1])["state"])
    with log.open("a") as file:
        for batch in feed.epoch(*feed.position):
            line = {"batch": batch["x"].tolist(), "state": feed.state_dict()}
            file.write(json.dumps(line) + "\n")
            file.flush()
            if feed.position[1] == last:
                os.kill(os.getpid(), signal.SIGKILL)


def test_killed_anywhere_it_goes_on_with_the_next_batch(tmp_path: Path) -> None:
    write_parquet(tmp_path / "data", [70, 1, 90, 0, 33])
    log = tmp_path / "log.jsonl"
    for last in (1, 2, 9, 24, 0):
        process = multiprocessing.get_context("fork").Process(
            target=read_and_die, args=(tmp_path / "data", log, last)
        )
        process.start()
        process.join()
        assert process.exitcode == (-signal.SIGKILL if last else 0)
    found = [json.loads(line)["batch"] for line in log.read_text().splitlines()]
    feed = Feed(Shards(tmp_path / "data", window=64), 8, shuffle=True, seed=6)
    assert found == [batch["x"].tolist() for batch in feed.epoch(0)]
