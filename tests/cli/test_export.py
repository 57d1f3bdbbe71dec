"""`trueloop export`: what it refuses before it reads a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueloop.cli import main
from trueloop.errors import ConfigError
from trueloop.tasks.spiral import Spiral


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["RUN"], "no place for the model: write --out FOLDER"),
        (["RUN", "--out", "."], "exists: name a folder that is not there yet"),
        (["RUN", "--out", "new", "--dtype", "int8"], "--dtype int8 is unknown: write --dtype fp32"),
        (["RUN", "--out", "new"], "no run at RUN"),
    ],
)
def test_a_wrong_command_is_one_line(
    words: list[str],
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["export", *words]) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_a_task_without_a_published_form_says_how_to_write_its_weights(tmp_path: Path) -> None:
    task = Spiral()
    with pytest.raises(ConfigError, match=r"task Spiral has no published form .*save_weights"):
        task.export(task.model(), tmp_path / "out", dtype="fp32")
    assert not list(tmp_path.iterdir())
