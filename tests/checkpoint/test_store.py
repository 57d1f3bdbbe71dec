"""A checkpoint on disk is whole or absent, says so itself, and runs nothing when it is read."""

from __future__ import annotations

import json
import os
import pickle
import random
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from whole_state import whole

from trueloop.checkpoint import load_checkpoint, store
from trueloop.errors import RunError

NAME = store.name_of(3, 0, 320)


def state(seed: int = 0) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(seed)
    return whole(model={"w": torch.randn(1000, generator=generator)}, note=[[{"x": 0.5}, seed]])


def same(found: dict[str, Any], seed: int = 0) -> bool:
    wanted = state(seed)
    return torch.equal(found["model"]["w"], wanted["model"]["w"]) and (
        found["note"] == wanted["note"]
    )


def written(folder: Path, name: str = NAME, seed: int = 0) -> Path:
    store.write(folder / name, state(seed), {"epoch": 3})
    return folder / name


def test_round_trip_and_what_the_manifest_says(tmp_path: Path) -> None:
    path = written(tmp_path / "new" / "folder")
    assert same(store.read(path))
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["epoch"] == 3
    assert manifest["files"]["state.pt"]["size"] == (path / "state.pt").stat().st_size
    assert os.listdir(path.parent) == [NAME]
    plain = torch.load(path / "state.pt", weights_only=True)
    assert same(plain), "torch alone can read it"


def test_names_sort_as_the_run_goes() -> None:
    places = [(0, 0, 0), (0, 9, 9), (0, 10, 10), (1, 0, 10), (100_000, 1, 10**10)]
    names = [store.name_of(*place) for place in places]
    assert len(set(names)) == len(names)
    for name in names:
        Path(name)


def test_names_in_a_folder_come_in_order_and_alone(tmp_path: Path) -> None:
    places = [(0, 0, 0), (0, 9, 9), (0, 10, 10), (1, 0, 10), (100_000, 1, 10**10)]
    for place in reversed(places):
        (tmp_path / store.name_of(*place)).mkdir()
    (tmp_path / "best.json").touch()
    (tmp_path / f".{NAME}.77.tmp").mkdir()
    assert store.names_in(tmp_path) == [store.name_of(*place) for place in places]
    assert store.names_in(tmp_path / "nowhere") == []


STAGES = ["folder made", "state written", "state flushed", "manifest written", "manifest flushed",
          "renamed", "done"]  # fmt: skip


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("replacing", [False, True])
def test_killed_at_any_stage_there_is_the_old_one_or_the_new_one(
    tmp_path: Path, stage: str, replacing: bool
) -> None:
    """A child process dies at the stage, as by SIGKILL: no clean-up of Python's runs."""
    old = written(tmp_path, store.name_of(2, 0, 300), seed=1)
    if replacing:
        written(tmp_path, seed=2)
    child = os.fork()
    if child == 0:
        store.reached = lambda at: os._exit(9) if at == stage else None  # type: ignore[assignment]
        written(tmp_path)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 9
    assert same(store.read(old), 1)
    names = store.names_in(tmp_path)
    if stage in ("renamed", "done"):
        assert same(load_checkpoint(tmp_path))
    elif replacing:
        assert same(load_checkpoint(tmp_path), 2)
    else:
        assert names == [old.name]
    store.remove_litter(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == names or sorted(os.listdir(tmp_path)) == names


def test_a_full_disk_leaves_the_others_and_no_litter(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = written(tmp_path, store.name_of(2, 0, 300), seed=1)

    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left") as e:
        written(tmp_path)
    assert "\n" not in str(e.value)
    assert os.listdir(tmp_path) == [old.name]
    assert same(store.read(old), 1)


class FullFile:
    """A disk that takes so many bytes and no more."""

    def __init__(self, room: int) -> None:
        self.room = room

    def write(self, data: Any) -> int:
        self.room -= len(data)
        if self.room < 0:
            raise OSError(28, "No space left on device")
        return len(data)

    def flush(self) -> None:
        pass


@pytest.mark.parametrize("room", [0, 100, 3000, 4500])
def test_a_disk_that_fills_up_inside_the_state_is_what_is_said(room: int) -> None:
    """torch.save itself raises something else then, when it closes its archive."""
    with pytest.raises(OSError, match="No space left"):
        store.Hashed(FullFile(room)).save(state())  # type: ignore[arg-type]


def mutations(path: Path, other: Path, rng: random.Random) -> str:
    """Damage the checkpoint in one of many ways; says which."""
    kind = rng.choice(["flip", "flip", "flip", "cut", "empty", "swap", "extend", "edit", "gone"])
    file = path / rng.choice(["state.pt", "manifest.json"])
    content = bytearray(file.read_bytes())
    if kind == "flip":
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    elif kind == "cut":
        del content[rng.randrange(len(content)) :]
    elif kind == "empty":
        content.clear()
    elif kind == "swap":
        content[:] = (other / file.name).read_bytes()
    elif kind == "extend":
        content += rng.randbytes(rng.randrange(1, 50))
    elif kind == "edit":
        manifest = json.loads((path / "manifest.json").read_text())
        key = rng.choice(["size", "sha256", "files", "format"])
        target = manifest if key in ("files", "format") else manifest["files"]["state.pt"]
        target[key] = rng.choice([None, 0, "0", [], {}, 1.5, "zz", -1])
        file, content = path / "manifest.json", bytearray(json.dumps(manifest).encode())
    if kind == "gone":
        file.unlink()
    else:
        file.write_bytes(content)
    return f"{kind} of {file.name}"


def test_whatever_is_damaged_is_refused_by_name_or_the_state_is_the_same(tmp_path: Path) -> None:
    whole, other = written(tmp_path), written(tmp_path, store.name_of(4, 0, 400), seed=1)
    rng, refused = random.Random(0), []
    for trial in range(2000):
        damaged = tmp_path / f"damaged-{trial}"
        shutil.copytree(whole, damaged)
        what = mutations(damaged, other, rng)
        try:
            found = store.read(damaged)
        except RunError as error:
            refused.append(str(damaged) in str(error) and "\n" not in str(error))
        else:
            assert same(found), what
        shutil.rmtree(damaged)
    assert len(refused) > 1500
    assert all(refused)


def test_no_code_of_a_file_is_run(tmp_path: Path) -> None:
    class Payload:
        def __reduce__(self) -> Any:
            return os.system, (f"touch {tmp_path / 'ran'}",)

    store.write(tmp_path / NAME, {"model": Payload()}, {})
    with pytest.raises(RunError, match=r"state\.pt cannot be read"):
        store.read(tmp_path / NAME)
    with (tmp_path / NAME / "state.pt").open("wb") as file:
        pickle.dump(Payload(), file)
    with pytest.raises(RunError, match="damaged"):
        store.read(tmp_path / NAME)
    assert not (tmp_path / "ran").exists()
