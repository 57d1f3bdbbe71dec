"""A checkpoint is whole or absent, and runs nothing when it is read."""

from __future__ import annotations

import errno
import os
import pickle
import random
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.checkpoint import Checkpoints, load_checkpoint, write_atomic
from trueloop.errors import RunError


def state() -> dict[str, Any]:
    return {"model": {"w": torch.arange(1000.0)}, "records": [[{"val_loss": 0.5}, 3]]}


def test_round_trip(tmp_path: Path) -> None:
    Checkpoints(tmp_path / "new" / "folder").save("last", state())
    found = load_checkpoint(tmp_path / "new" / "folder")
    assert torch.equal(found["model"]["w"], state()["model"]["w"])
    assert found["records"] == state()["records"]
    assert [p.name for p in (tmp_path / "new" / "folder").iterdir()] == ["last.pt"]


def test_a_failed_write_leaves_the_old_file_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "last.pt"
    write_atomic(path, b"old")

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left") as e:
        write_atomic(path, b"new")
    assert "\n" not in str(e.value)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["last.pt"]


def test_what_is_written_is_on_the_disk_before_it_takes_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced = tmp_path / "last.pt", []
    write_atomic(path, b"old")
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append((path.read_bytes(), os.fstat(descriptor).st_size))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write_atomic(path, b"longer")
    assert synced[0] == (b"old", 6)
    assert [content for content, _ in synced] == [b"old", b"longer"], "then the folder"


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError, match="cannot write"):
        Checkpoints(tmp_path / "file" / "checkpoints").save("last", state())


def test_a_disk_that_refuses_the_removal_too_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "open", refuse)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(RunError, match=r"cannot write .*a\.json \(Read-only file system\)"):
        write_atomic(tmp_path / "a.json", b"x")


def test_damaged_files_are_refused_with_their_name(tmp_path: Path) -> None:
    path = Checkpoints(tmp_path).save("last", state())
    whole = path.read_bytes()
    rng, named = random.Random(0), []
    for content in (b"", b"no checkpoint", whole[: len(whole) // 2], whole[100:]):
        path.write_bytes(content)
        with pytest.raises(RunError, match=r"last\.pt") as e:
            load_checkpoint(tmp_path)
        assert "\n" not in str(e.value)
    for _ in range(50):
        # Anywhere in the file: refused by name, or the very same state (padding was hit).
        damaged = bytearray(whole)
        damaged[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        path.write_bytes(bytes(damaged))
        try:
            found = load_checkpoint(tmp_path)
        except RunError as error:
            named.append("last.pt" in str(error))
        else:
            assert torch.equal(found["model"]["w"], state()["model"]["w"])
    assert len(named) > 25
    assert all(named)


def test_no_code_of_a_file_is_run(tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    torch.save({"format": 1, "model": Payload()}, tmp_path / "last.pt")
    with pytest.raises(RunError, match="damaged or no checkpoint"):
        load_checkpoint(tmp_path)
    (tmp_path / "last.pt").write_bytes(pickle.dumps(Payload()))
    with pytest.raises(RunError):
        load_checkpoint(tmp_path)
    assert not (tmp_path / "ran").exists()


def test_what_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"no checkpoint at .*best\.pt"):
        load_checkpoint(tmp_path, "best")
    torch.save({"weights": 1}, tmp_path / "best.pt")
    with pytest.raises(RunError, match="no checkpoint of this version"):
        load_checkpoint(tmp_path, "best")
