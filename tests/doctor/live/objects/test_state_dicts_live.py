"""State in programs that run: taken, saved, loaded, given back, by whichever way it goes."""

from __future__ import annotations

import io
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from trueloop.doctor.live.objects import state_dicts
from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.events import (
    Event,
    FileLoaded,
    FileSaved,
    StateDictCreated,
    StateDictLoaded,
)
from trueloop.doctor.model.things import Checkpoint, Model, StateDict


class Seen:
    def __init__(self) -> None:
        self.watcher = Watcher([])
        self.events: list[Event] = []
        self.watcher.recorder.listeners.append(self.events.append)

    def only(self, kind: type[Event]) -> Any:
        (event,) = (each for each in self.events if type(each) is kind)
        return event


@pytest.fixture
def seen() -> Iterator[Seen]:
    seen = Seen()
    seen.watcher.start()
    yield seen
    seen.watcher.stop()
    assert seen.watcher.hub.errors == []


def test_a_state_dict_is_known_again_inside_of_what_is_saved(seen: Seen) -> None:
    model = nn.Linear(2, 1)
    torch.save({"epoch": 3, "parts": [{"model": model.state_dict()}]}, io.BytesIO())
    saved, taken = seen.only(FileSaved), seen.only(StateDictCreated)
    assert saved.value.entries["parts"].values[0].entries["model"] is taken.state
    assert saved.file == state_dicts.IN_MEMORY


def test_a_copy_is_no_state_dict_of_ours(seen: Seen) -> None:
    model = nn.Linear(2, 1)
    torch.save({key: value.clone() for key, value in model.state_dict().items()}, io.BytesIO())
    assert not isinstance(seen.only(FileSaved).value, StateDict)


def test_keys_that_were_changed_show(seen: Seen) -> None:
    model = nn.Linear(2, 1)
    torch.save({f"net.{key}": each for key, each in model.state_dict().items()}, io.BytesIO())
    saved = seen.only(FileSaved)
    assert isinstance(saved.value, StateDict)
    assert saved.value.edited


def test_a_model_is_saved_as_itself(seen: Seen) -> None:
    torch.save({"model": nn.Linear(2, 1)}, io.BytesIO())
    assert isinstance(seen.only(FileSaved).value.entries["model"], Model)


def test_what_is_loaded_is_known_by_its_tensors(seen: Seen, tmp_path: Path) -> None:
    model, other = nn.Linear(2, 1), nn.Linear(2, 1)
    file = tmp_path / "last.pt"
    torch.save({"epoch": 7, "model": model.state_dict()}, file)
    other.load_state_dict(torch.load(file)["model"])
    loaded, given = seen.only(FileLoaded), seen.only(StateDictLoaded)
    assert loaded.file == str(file)
    assert loaded.value.counts == {7}
    assert isinstance(given.state, Checkpoint)
    assert given.state.inside is loaded.value
    assert not given.state.edited


def test_keys_that_were_missing_are_told(seen: Seen) -> None:
    model = nn.Linear(2, 1)
    model.load_state_dict({"weight": torch.zeros(1, 2)}, strict=False)
    given = seen.only(StateDictLoaded)
    assert given.missing == ("bias",)
    assert given.strict is False


def test_a_state_of_parts_is_taken_once(seen: Seen) -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Sequential(nn.Linear(2, 1)))
    assert len(model.state_dict()) == 4
    assert seen.only(StateDictCreated).state.owner.kind == "torch.nn.Sequential"


def test_nothing_of_the_program_is_kept_alive(seen: Seen) -> None:
    model = nn.Linear(2, 1)
    state = model.state_dict()
    before = len(seen.watcher.recorder.things.states)
    assert before >= 2
    del state
    assert len(seen.watcher.recorder.things.states) == before - 2


@pytest.mark.parametrize(
    ("file", "name"),
    [
        (io.BytesIO(), state_dicts.IN_MEMORY),
        (Path("a") / "b.pt", os.path.join("a", "b.pt")),
        (os.path.join(tempfile.gettempdir(), "tmpabcd_123"), state_dicts.IN_MEMORY),
        (os.path.join(tempfile.gettempdir(), "tmpabcd_123", "x.pt"), None),
    ],
    ids=["buffer", "path", "temporary", "in-a-temporary-folder"],
)
def test_names_of_files(file: Any, name: str | None) -> None:
    assert state_dicts.path_of(file) == (os.fspath(file) if name is None else name)
