"""A script in a process of its own, run alone and under `trueloop watch`."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import warm_python

TRUELOOP = [sys.executable, "-m", "trueloop"]
WATCH = [*TRUELOOP, "watch"]
FIRST = "assert 'torch' not in sys.modules"
HEAD = f"""\
import os, sys
{FIRST}
os.environ["OMP_NUM_THREADS"] = "1"
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
"""


class Ended(NamedTuple):
    status: int
    out: bytes
    err: str
    files: dict[str, bytes]


def run(command: Sequence[str], folder: Path, *, interrupt: int = 0) -> Ended:
    """Run it in `folder`; with `interrupt`, send that signal once it has said that it is ready."""
    process = subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.PIPE
    )
    if interrupt:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(interrupt)
    out, err = process.communicate(timeout=120)
    return Ended(process.returncode, out, err.decode(), files_in(folder))


def trueloop(words: Sequence[str], folder: Path) -> subprocess.CompletedProcess[str]:
    """`trueloop WORDS` in `folder`, in a process that has imported torch before."""
    return warm_python.run([*TRUELOOP, *words], cwd=folder, text=True)


def zygote(**environment: str) -> subprocess.Popen[str]:
    """A process that watches the programs that it is given: see zygote.py."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    return warm_python.Bare(
        [sys.executable, "-m", "zygote"], cwd=Path(__file__).parent, text=True, **pipes,
        env={**os.environ, **environment},
    )  # fmt: skip


def run_warm(command: Sequence[str], folder: Path) -> Ended:
    """The same, in a process that has imported torch before."""
    status, out, err = warm_python.run_script(command, folder)
    return Ended(status, out, err.decode(), files_in(folder))


def files_in(folder: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


def alone_and_watched(
    tmp_path: Path,
    text: str,
    *words: str,
    options: Sequence[str] = (),
    interrupt: int = 0,
    warm: bool = False,
) -> tuple[Ended, Ended]:
    """`python train.py WORDS` and `trueloop watch train.py WORDS`, each in a folder `run`."""
    ended = []
    for name, command in (("a", [sys.executable]), ("b", [*WATCH, *options])):
        folder = tmp_path / name / "run"
        folder.mkdir(parents=True)
        (folder / "train.py").write_text(text)
        line = [*command, "train.py", *words]
        done = run_warm(line, folder) if warm else run(line, folder, interrupt=interrupt)
        here = str(tmp_path / name)
        ended.append(
            done._replace(
                out=done.out.replace(here.encode(), b"HERE"), err=done.err.replace(here, "HERE")
            )
        )
    return ended[0], ended[1]
