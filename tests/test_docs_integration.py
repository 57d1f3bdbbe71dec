"""What `trueloop watch` prints is what the documents show; programs with other trainers run."""

from __future__ import annotations

import importlib.util
import shlex
import shutil
import sys
from pathlib import Path

import pytest

import warm_python
from documents import DOCUMENTS, FOLDERS, Block, blocks, is_shown

SHOWN: dict[tuple[str, str], list[Block]] = {}
"""By folder and command: each is run once."""


def _gather() -> dict[tuple[str, str], list[Block]]:
    for document in DOCUMENTS:
        for block in blocks(document):
            if block.command.startswith("trueloop watch"):
                SHOWN.setdefault((block.folder, block.command), []).append(block)
    return SHOWN


@pytest.mark.parametrize("key", _gather(), ids=" ".join)
def test_an_output_is_what_the_command_prints(key: tuple[str, str], tmp_path: Path) -> None:
    folder, command = key
    shutil.copytree(FOLDERS / folder, tmp_path, dirs_exist_ok=True)
    _, out, err = warm_python.run_script([sys.executable, "-m", *shlex.split(command)], tmp_path)
    printed = (out + err).decode()
    for block in SHOWN[key]:
        same = is_shown(block.text, printed, part=block.part, apart=block.apart)
        assert same, f"{block.place}\n{printed}"


OTHERS = [block for page in DOCUMENTS for block in blocks(page) if block.needs]


@pytest.mark.parametrize("block", OTHERS, ids=lambda block: block.place)
def test_a_program_with_a_different_trainer_runs(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first program of its page, which makes the data."""
    if importlib.util.find_spec(block.needs) is None:
        pytest.skip(f"{block.needs} is not installed")
    monkeypatch.chdir(tmp_path)
    program = f"{blocks(block.document)[0].text}\n\n{block.text}"
    (tmp_path / "program.py").write_text(program, "utf-8")
    status, _, err = warm_python.run_script([sys.executable, "program.py"], tmp_path)
    assert status == 0, err.decode()
