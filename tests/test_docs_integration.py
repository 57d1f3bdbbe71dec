"""What `trueloop watch` prints is what the documents show."""

from __future__ import annotations

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
