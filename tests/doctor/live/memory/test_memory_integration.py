"""Programs that run out of memory: what is said of it, and that what is said to fit does."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

import warm_python
from documents import is_shown, shown

DIES = """\
import os, resource, sys
os.environ["OMP_NUM_THREADS"] = "1"
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
    def forward(self, x):
        return x + self.down(torch.relu(self.up(x)))

samples, width, room = map(int, sys.argv[1:])
model = nn.Sequential(*[Block(width) for _ in range(4)], nn.Linear(width, 10))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + room * 2**20,) * 2)
for update in range(3):
    x, y = torch.randn(samples, width), torch.zeros(samples, dtype=torch.int64)
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print("done")
"""
needs_limits = pytest.mark.skipif(
    not os.path.exists("/proc/self/statm"), reason="no /proc to see the address space in"
)


def run(folder: Path, *words: object, watched: bool = True) -> tuple[int, str, str]:
    (folder / "train.py").write_text(DIES)
    watch = ["-m", "trueloop", "watch", "--format", "json", "--output", "found.json"]
    command = [sys.executable, *(watch if watched else []), "train.py", *map(str, words)]
    status, out, err = warm_python.run_script(command, folder)
    return status, out.decode(), err.decode()


@needs_limits
def test_what_is_said_fits(tmp_path: Path) -> None:
    status, out, err = run(tmp_path, 16_384, 256, 400)
    assert (status, out) == (1, "")
    assert err.splitlines()[-1].startswith("RuntimeError: ")
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["problems"] == []
    memory = found["memory"]
    assert memory["moment"] == "forward"
    assert (memory["path"], memory["line"]) == ("train.py", 11)
    assert memory["limited_by"] == "RLIMIT_AS"
    weights = 4 * (4 * (2 * 256 * 1024 + 1024 + 256) + 256 * 10 + 10)
    assert memory["weights"] == memory["gradients"] == weights
    assert memory["optimizer_state"] == 2 * weights
    assert memory["samples"] == 16_384
    assert memory["batch"] == 16_384 * 256 * 4
    # What relu gives and the sum, of each block; it has died before any loss was seen.
    assert memory["activations"] == 16_384 * 4 * (1024 + 256) * 4
    ways = {each["what"]: each for each in memory["fits"]}
    advised = ways["batch size"]["samples"]
    assert 512 < advised < 16_384
    assert run(tmp_path, advised, 256, 400, watched=False)[:2] == (0, "done\n")


@needs_limits
def test_what_is_said_where_weights_alone_are_too_much(tmp_path: Path) -> None:
    status, _, err = run(tmp_path, 4, 2048, 400 + 64)
    assert status == 1, err
    memory = json.loads((tmp_path / "found.json").read_text())["memory"]
    assert memory["moment"] in ("backward", "step")
    assert [each["what"] for each in memory["fits"]] == ["none"]


@needs_limits
def test_the_text_of_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DIES)
    command = [sys.executable, "-m", "trueloop", "watch", "train.py", "16384", "256", "400"]
    _, _, err = warm_python.run_script(command, tmp_path)
    trace, _, told = err.decode().partition("\nMemory\n")
    assert trace.splitlines()[-1].startswith("RuntimeError: ")
    name = "tests/doctor/live/memory/test_memory_integration.py::test_the_text_of_it"
    (text,) = shown(name)
    assert is_shown(text, f"Memory\n{told}", apart=True)
    told = " ".join(told.split())
    assert told.startswith("train.py:11:")
    assert "memory ran out in update 1, in the forward of `" in told
    assert "optimizer state 16.1 MiB AdamW; not fully allocated yet" in told
    assert "fits: a batch of" in told
    assert "not needed" in told
