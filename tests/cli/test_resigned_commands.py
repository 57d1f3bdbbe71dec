"""evaluate and resume of a run whose checkpoint was changed and signed again: done, or one line."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from resigned import changes, examples, resign
from trueloop.checkpoint import load_checkpoint, store
from trueloop.cli import main


@pytest.fixture(scope="module")
def ended_early(tmp_path_factory: pytest.TempPathFactory, line_file: Path) -> Path:
    """A run that the clock ended inside its first epoch."""
    run = tmp_path_factory.mktemp("ended") / "run"
    words = ["train", f"{line_file}:Line", "--quiet", "--run", str(run), "--max-minutes", "1e-9"]
    assert main([*words, "--schedule", "plateau", "--accumulate", "2", "--patience", "5"]) == 0
    return run


@settings(
    max_examples=examples(8),
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(made=changes())
def test_a_changed_checkpoint_is_used_or_refused_in_one_line(
    ended_early: Path,
    command: Callable[..., Any],
    tmp_path_factory: pytest.TempPathFactory,
    made: Any,
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    run = folder / "run"
    shutil.copytree(ended_early, run)
    (name,) = store.names_in(run / "checkpoints")[-1:]
    resign(run / "checkpoints" / name, load_checkpoint(run / "checkpoints"), made)
    for words in (["evaluate", str(run)], ["resume", str(run), "--quiet", "--max-minutes", "9"]):
        ended = command(*words)
        assert ended.status in (0, 1, 2), ended
        assert "Traceback" not in ended.err
        # Beside it stand warnings, and what the doctor finds in a run whose numbers explode.
        errors = [line for line in ended.err.splitlines() if line.startswith("trueloop: error: ")]
        assert len(errors) == (ended.status != 0), ended.err
        assert [entry.name for entry in folder.iterdir()] == ["run"]
    shutil.rmtree(folder)
