"""Programs that train in two processes: what is said when their parameters come apart."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).parents[1] / "corpus"
PROGRAMS = sorted(CORPUS.glob("TL904/*.py"))
MARK = re.compile(r"#\s*<-\s*(TL\d+)")


@pytest.fixture(scope="module")
def ranks() -> Iterator[list[subprocess.Popen[str]]]:
    """Two processes that fork for each program, each as one rank of it."""
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    found = []
    for rank in range(2):
        environment = {
            **os.environ, "OMP_NUM_THREADS": "1", "MASTER_ADDR": "localhost",
            "MASTER_PORT": str(port), "WORLD_SIZE": "2", "RANK": str(rank),
            "LOCAL_RANK": str(rank),
        }  # fmt: skip
        script = Path(__file__).with_name("zygote.py")
        found.append(
            subprocess.Popen(
                [sys.executable, str(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                text=True, env=environment,
            )
        )  # fmt: skip
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


@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_two_ranks(path: Path, ranks: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    first, second = watched(ranks, path, tmp_path)
    if first.get("late") or second.get("late"):  # torch's own, as zygote.py says
        first, second = watched(ranks, path, tmp_path)
    marks = [
        [found.group(1), number]
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (found := MARK.search(line))
    ]
    assert [answer["raised"] for answer in (first, second)] == ["", ""]
    assert [answer["errors"] for answer in (first, second)] == [[], []]
    alarms = [[code, line] for code, severity, line in first["findings"] if severity != "advice"]
    assert alarms == marks
    assert "TL904" not in {code for code, _, _ in second["findings"]}


def test_the_first_rank_says_which_and_since_when(tmp_path: Path) -> None:
    program = CORPUS / "TL904" / "bad_rate_by_rank.py"
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--standalone",
         "-m", "trueloop", "watch", str(program)],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("TL904 error") == 1
    told = " ".join(done.stderr.split())
    assert re.search(
        r"After \d+ updates the parameters of `model` are not the same on ranks 0", told
    )
    assert re.search(r"The learning rate is [\d.e-]+ on rank 0 and [\d.e-]+ on rank 1\.", told)
