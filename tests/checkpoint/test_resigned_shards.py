"""Checkpoints of several ranks whose hashes fit and whose content does not: one line says why."""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import random
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.distributed.checkpoint.metadata import MetadataIndex, TensorProperties

import trueloop
from on_ranks import on_ranks
from trueloop.checkpoint import Checkpoints, capture, load_checkpoint, store
from trueloop.errors import RunError

WEIGHT = "model/1.weight"


def save(folder: Path) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(8, 48), nn.Linear(48, 48), nn.Linear(48, 48))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loss_fn = trueloop.supervised(nn.MSELoss())
    step = trueloop.Step(model, optimizer, loss_fn, parallel="ddp")
    saved = Checkpoints(folder)
    saved.save(capture(step, trueloop.Feed((torch.rand(8, 8), torch.rand(8, 48)), 4)), (0, 0, 1))
    saved.wait()


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The only checkpoint of a folder, saved by two ranks."""
    folder = tmp_path_factory.mktemp("saved")
    on_ranks(2, save, folder)
    return folder / store.names_in(folder)[0]


@pytest.fixture
def path(written: Path, tmp_path: Path) -> Path:
    """A copy of it, to be spoilt."""
    shutil.copytree(written, tmp_path / written.name)
    return tmp_path / written.name


def resign(file: Path, content: bytes) -> None:
    """Write the file, and what its manifest says of it."""
    file.write_bytes(content)
    manifest = file.with_name("manifest.json")
    facts = json.loads(manifest.read_text())
    facts["files"][file.name] = {
        "size": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
    }
    manifest.write_text(json.dumps(facts))


def index_of(path: Path) -> Any:
    return pickle.loads((path / ".metadata").read_bytes())


def place(index: Any) -> Any:
    return index.storage_data[MetadataIndex(WEIGHT, [0, 0])]


def moved(**attributes: Any) -> Callable[[Any], None]:
    """Say that the weight is somewhere else."""

    def spoil(index: Any) -> None:
        for name, value in attributes.items():
            setattr(place(index), name, value)

    return spoil


def shaped(*size: int) -> Callable[[Any], None]:
    """Say that the weight, and the one box of it, have another shape."""

    def spoil(index: Any) -> None:
        tensor = index.state_dict_metadata[WEIGHT]
        tensor.size = tensor.chunks[0].sizes = torch.Size(size)
        tensor.chunks[0].offsets = torch.Size([0] * len(size))

    return spoil


def tensor(index: Any) -> Any:
    return index.state_dict_metadata[WEIGHT]


SPOILT: dict[str, Callable[[Any], Any]] = {
    "an offset beyond the file": moved(offset=10**12),
    "a negative offset": moved(offset=-5),
    "a length beyond the file": moved(length=10**15),
    "a negative length": moved(length=-1),
    "a length that is no number": moved(length="all"),
    "a file elsewhere": moved(relative_path="../../secret"),
    "an absolute path": moved(relative_path="/etc/passwd"),
    "a file that is no text": moved(relative_path=7),
    "the index itself": moved(relative_path=".metadata", offset=0, length=10),
    "an extension": moved(transform_descriptors=["zstd"]),
    "a shape without end": shaped(2**40, 2**20),
    "a negative box": lambda index: setattr(tensor(index).chunks[0], "sizes", torch.Size([-1, 1])),
    "a shape of text": lambda index: setattr(tensor(index), "size", "large"),
    "another shape than in the state": shaped(48 * 48),
    "other dimensions": lambda index: setattr(tensor(index).chunks[0], "sizes", torch.Size([48])),
    "a box outside": lambda index: setattr(tensor(index).chunks[0], "offsets", torch.Size([9, 0])),
    "no box": lambda index: tensor(index).chunks.clear(),
    "boxes that are none": lambda index: setattr(tensor(index), "chunks", 5),
    "a box twice": lambda index: tensor(index).chunks.extend(tensor(index).chunks * 3),
    "no dtype": lambda index: setattr(tensor(index), "properties", None),
    "another dtype": lambda index: setattr(
        tensor(index), "properties", TensorProperties(dtype=torch.uint8)
    ),
    "no such tensor": lambda index: index.state_dict_metadata.pop(WEIGHT),
    "nowhere": lambda index: index.storage_data.clear(),
    "a key that is no text": lambda index: index.state_dict_metadata.update({5: None}),
    "no tensors": lambda index: setattr(index, "state_dict_metadata", None),
    "no places": lambda index: setattr(index, "storage_data", [1]),
}  # fmt: skip


@pytest.mark.parametrize("case", SPOILT)
def test_an_index_that_leads_elsewhere(path: Path, case: str) -> None:
    index = index_of(path)
    SPOILT[case](index)
    resign(path / ".metadata", pickle.dumps(index))
    with pytest.raises(RunError) as raised:
        load_checkpoint(path)
    assert str(raised.value).startswith(str(path))
    assert str(raised.value).endswith("use a different checkpoint")
    assert "\n" not in str(raised.value)


class Payload:
    """Makes a file where it is unpickled."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> Any:
        return os.mkdir, (str(self.file),)


@pytest.mark.parametrize("where", ["index", "planner_data", "shard", "state.pt"])
def test_nothing_in_it_is_executed(path: Path, tmp_path: Path, where: str) -> None:
    ran = tmp_path / "ran"
    name, content = ".metadata", pickle.dumps(Payload(ran))
    index = index_of(path)
    pickled = io.BytesIO()
    torch.save(Payload(ran), pickled)
    if where == "planner_data":
        index.planner_data = {"x": Payload(ran)}
        content = pickle.dumps(index)
    elif where == "shard":
        name = place(index).relative_path
        whole = bytearray((path / name).read_bytes())
        place(index).offset, place(index).length = len(whole), len(whole) + 48 * 48 * 4
        resign(path / ".metadata", pickle.dumps(index))
        content = bytes(whole) + pickled.getvalue().ljust(len(whole) + 48 * 48 * 4, b"\0")
    elif where == "state.pt":
        name, content = "state.pt", pickled.getvalue()
    resign(path / name, content)
    with pytest.raises(RunError, match="cannot be read") as raised:
        load_checkpoint(path)
    assert not ran.exists()
    assert str(raised.value).endswith("use a different checkpoint")
    if where in ("index", "planner_data"):
        assert "mkdir, which no index needs" in str(raised.value)


def test_bits_that_flip(written: Path, tmp_path: Path) -> None:
    """In the index: what is loaded has the right names and shapes, or one line says why not."""
    rng, refused = random.Random(0), 0
    content = (written / ".metadata").read_bytes()
    wanted = load_checkpoint(written)["model"]
    path = tmp_path / written.name
    shutil.copytree(written, path)
    for _ in range(150):
        damaged = bytearray(content)
        damaged[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        resign(path / ".metadata", bytes(damaged))
        found, why = loaded(path)
        refused += bool(why)
        assert "\n" not in why
        if not why:
            assert shapes(found["model"]) == shapes(wanted)
    assert refused > 100


def shapes(tensors: dict[str, Tensor]) -> dict[str, torch.Size]:
    return {name: tensor.shape for name, tensor in tensors.items()}


def loaded(path: Path) -> tuple[Any, str]:
    """The state, or what an error of ours says."""
    try:
        return load_checkpoint(path), ""
    except RunError as error:
        return {}, str(error)


def own_state_read(path: Path) -> str:
    return loaded(path)[1]


def test_a_state_that_holds_itself(path: Path) -> None:
    state = torch.load(path / "state.pt", weights_only=True)
    endless: list[Any] = []
    endless += [endless, endless, None]
    state["named"] = {"ema": endless}
    content = io.BytesIO()
    torch.save(state, content)
    resign(path / "state.pt", content.getvalue())
    with pytest.raises(RunError, match="is nested too deep"):
        load_checkpoint(path)


@pytest.mark.parametrize("part", ["ranks", "model", "step"])
def test_a_part_that_is_missing_is_named(path: Path, part: str) -> None:
    state = torch.load(path / "state.pt", weights_only=True)
    del state[part]
    content = io.BytesIO()
    torch.save(state, content)
    resign(path / "state.pt", content.getvalue())
    with pytest.raises(RunError, match=f"{part} is missing: use a different checkpoint"):
        load_checkpoint(path)


def test_a_ranks_own_state_is_checked_like_the_rest(path: Path, tmp_path: Path) -> None:
    index = index_of(path)
    own = index.storage_data[MetadataIndex("rank/1", [0])]
    file = path / own.relative_path
    pickled, wrapped = io.BytesIO(), io.BytesIO()
    torch.save(Payload(tmp_path / "ran"), pickled)
    row = torch.frombuffer(bytearray(pickled.getvalue()), dtype=torch.uint8)
    torch.save(row, wrapped)
    content = file.read_bytes()
    own.offset, own.length = len(content), wrapped.getbuffer().nbytes
    saved = index.state_dict_metadata["rank/1"]
    saved.size = saved.chunks[0].sizes = row.shape
    resign(path / ".metadata", pickle.dumps(index))
    resign(file, content + wrapped.getvalue())
    first, other = on_ranks(2, own_state_read, path)
    assert first == other
    assert "rank/1 cannot be read" in first
    assert not (tmp_path / "ran").exists()
    load_checkpoint(path)  # one process does without it
