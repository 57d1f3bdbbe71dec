"""Programs that train in two processes: what is found when ranks get into each other's way."""

from __future__ import annotations

import json
import re
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import watched_scripts

from marks import marked

CORPUS = Path(__file__).parents[2] / "corpus"
PROGRAMS = sorted(CORPUS.glob("TL90[1-5]/*.py"))


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes that fork for each program, each as one rank of it."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    found = [
        watched_scripts.zygote(
            OMP_NUM_THREADS="1", MASTER_ADDR="localhost", MASTER_PORT=str(port),
            WORLD_SIZE="2", RANK=str(rank), LOCAL_RANK=str(rank),
        )
        for rank in range(2)
    ]  # fmt: skip
    yield found
    for process in found:
        assert process.stdin is not None
        process.stdin.close()
        process.wait(timeout=30)


def watched(ranks: list[subprocess.Popen[str]], path: Path, folder: Path) -> list[dict[str, Any]]:
    """What each rank has found."""
    for process in ranks:
        assert process.stdin is not None
        process.stdin.write(json.dumps({"path": str(path), "folder": str(folder)}) + "\n")
        process.stdin.flush()
    return [json.loads(process.stdout.readline()) for process in ranks if process.stdout]


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_two_ranks(path: Path, ranks: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    first, second = watched(ranks, path, tmp_path)
    marks = [list(each) for each in marked(path)]
    assert [answer["raised"] for answer in (first, second)] == ["", ""]
    assert [answer["errors"] for answer in (first, second)] == [[], []]
    assert _alarms(first) == marks
    # The first rank alone compares parameters.
    assert _alarms(second) == ([] if path.parent.name == "TL904" else marks)


def _alarms(answer: dict[str, Any]) -> list[list[Any]]:
    return [[code, line] for code, severity, line in answer["findings"] if severity != "advice"]


def test_the_first_rank_says_which_and_since_when(
    ranks: list[subprocess.Popen[str]], tmp_path: Path
) -> None:
    first, _ = watched(ranks, CORPUS / "TL904" / "bad_rate_by_rank.py", tmp_path)
    (told,) = first["messages"]
    assert re.match(r"After \d+ updates the parameters of `model` differ between ranks 0", told)
    assert re.search(r"The learning rate is [\d.e-]+ on rank 0 and [\d.e-]+ on rank 1\.", told)
