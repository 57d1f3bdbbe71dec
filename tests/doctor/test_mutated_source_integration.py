"""Damaged programs: never a fault of the checker's own, never long."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from trueloop.doctor.static import check_text
from trueloop.doctor.static.inputs.examine import examine

CORPUS = sorted((Path(__file__).parent / "corpus").glob("TL*/*.py"))
NAMES = ["self", "model", "optimizer", "loss", "None", "x", "torch", "lambda: x", "*a", "1", "[]"]


def cut(text: str, chance: random.Random) -> str:
    start = chance.randrange(len(text))
    return text[:start] + text[start + chance.randrange(1, 40) :]


def swap_lines(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    a, b = chance.randrange(len(lines)), chance.randrange(len(lines))
    lines[a], lines[b] = lines[b], lines[a]
    return "".join(lines)


def repeat_line(text: str, chance: random.Random) -> str:
    lines = text.splitlines(keepends=True)
    at = chance.randrange(len(lines))
    return "".join([*lines[:at], *[lines[at]] * chance.choice([2, 3, 50]), *lines[at:]])


def rename(text: str, chance: random.Random) -> str:
    words = [
        word for word in text.replace("(", " ").replace(".", " ").split() if word.isidentifier()
    ]
    return text.replace(chance.choice(words), chance.choice(NAMES), chance.choice([1, 1, 5, -1]))


def splice(text: str, chance: random.Random) -> str:
    other = chance.choice(CORPUS).read_text("utf-8")
    return text[: chance.randrange(len(text))] + other[chance.randrange(len(other)) :]


def insert(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text))
    piece = chance.choice(
        ["(", ")", ":", "\n", "  ", "\t", "'", '"""', "\\", "@", "\x00", "é", "=", "*"]
    )
    return text[:at] + piece + text[at:]


MUTATIONS: list[Callable[[str, random.Random], str]] = [
    cut, swap_lines, repeat_line, rename, splice, insert, swap_lines, rename,
]  # fmt: skip


def problems_of(path: Path, text: str) -> list[str]:
    path.write_text(text, "utf-8")
    begun = time.process_time()
    found = examine(str(path))
    assert time.process_time() - begun < 5
    if path.suffix == ".py" and not found.problems:
        check_text(text, str(path), strict=True)  # raises what is otherwise passed over
    return [problem.message for problem in found.problems if "fault of" in problem.message]


@pytest.mark.filterwarnings("ignore:.*invalid escape", "ignore:.*invalid decimal literal")
@pytest.mark.parametrize("seed", range(8))
def test_damaged_programs(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(60):
        text = chance.choice(CORPUS).read_text("utf-8")
        for _ in range(chance.choice([1, 1, 2, 4])):
            text = chance.choice(MUTATIONS)(text, chance)
        assert problems_of(tmp_path / "a.py", text) == [], text


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n" + "x = [" + "1, " * 300_000 + "]\n",
        "import torch\n" + "def f(): return torch.zeros(3)\n" * 30_000,
        "import torch\n" + "f(" * 90 + ")" * 90,
        "import torch\nx = " + " + ".join(["torch.zeros(1)"] * 600),
        "import torch\n" + "".join(" " * i + "if x:\n" for i in range(95)) + " " * 95 + "y = 1",
        "import torch\n" + "".join(" " * i + "for x in y:\n" for i in range(19)) + " " * 19 + "y",
        "import torch\ndef f(n): return f(n - 1) + f(n - 2)\nf(100)",
        "import torch\nx = []\nx.append(x)\nfor y in x: x.append(y)\nprint(x == x)",
        "import torch\nclass A(A): pass\nclass B(C): pass\nclass C(B): pass\nB()",
        "import torch\n" + "".join(f"if a{i}: b{i} = torch.zeros({i})\n" for i in range(2000)),
        "import torch\nx = torch\n" + "x = x.y(x)\n" * 3000,
        "import torch\nwhile True:\n  while True:\n    while True: torch.zeros(3)",
        "import torch\nfor i in range(10**12): torch.zeros(i)\nx = 'a' * 10**12\ny = 10**10**10",
        "import torch\nx = torch.Tensor([1e999])[0]\nz = torch.zeros(float('inf'))",
    ],
    ids=["list", "functions", "calls", "sum", "ifs", "loops", "recursion", "self", "bases",
         "options", "chain", "endless", "huge", "infinite"],
)  # fmt: skip
def test_programs_made_to_take_long(tmp_path: Path, text: str) -> None:
    assert problems_of(tmp_path / "a.py", text) == []


def test_imports_in_a_circle(tmp_path: Path) -> None:
    for here, there in (("a", "b"), ("b", "a")):
        (tmp_path / f"{here}.py").write_text(
            f"import torch\nfrom {there} import *\nimport {there}\n{there}.{here} = {there}\n"
        )
    assert examine(str(tmp_path / "a.py")).problems == ()


@pytest.mark.parametrize("seed", range(3))
def test_damaged_notebooks(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(30):
        lines = chance.choice(CORPUS).read_text("utf-8").splitlines(keepends=True)
        cells = [
            {"cell_type": "code", "source": lines[start : start + 7]}
            for start in range(0, len(lines), 7)
        ]
        text = json.dumps({"cells": cells, "metadata": {}})
        if chance.random() < 0.5:
            text = chance.choice([cut, insert])(text, chance)
        assert problems_of(tmp_path / "a.ipynb", text) == [], text
