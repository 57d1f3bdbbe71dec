"""`trueloop watch` beside TrainCheck (OSDI 2025) on a toy program and five faulty versions of it.

TrainCheck learns invariants from a trace of a correct run and counts how many of them a later run
violates; so it is given the correct program first, then the same program again (whatever it says of
that is a false alarm), the same program with another seed, and the faulty ones. Ours is given each
program and nothing else.

    python -m venv traincheck; traincheck/bin/pip install -c constraints.txt traincheck
    python benchmarks/watch_vs_traincheck.py traincheck/bin
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from common import save_results, table

RIGHT = Path(__file__).parent / "toy_faults" / "right.py"
_CLEAR, _BACKWARD = "        optimizer.zero_grad()\n", "        loss.backward()\n"
PROGRAMS: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "the same again": ("", ()),
    "another seed": ("", (("manual_seed(0)", "manual_seed(1)"),)),
    "gradients cleared behind backward": (
        "TL101",
        ((_CLEAR, ""), (_BACKWARD, _BACKWARD + _CLEAR)),
    ),
    "gradients never cleared": ("TL102", ((_CLEAR, ""),)),
    "model.train() before the epochs": (
        "TL201",
        (
            ("    model.train()\n", ""),
            ("for epoch in", "model.train()\nfor epoch in"),
        ),
    ),
    "a layer left out of the optimizer": (
        "TL302",
        (("Adam(model.parameters()", "Adam(model[0].parameters()"),),
    ),
    "softmax before cross-entropy": (
        "TL401",
        (("criterion(model(batch), labels)", "criterion(model(batch).softmax(1), labels)"),),
    ),
}
"""What is planted -> the code that ours must give, and the changes of the text."""


def run(*words: str | Path, folder: Path) -> tuple[float, str]:
    """Seconds, and what was printed."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    begin = time.perf_counter()
    done = subprocess.run(
        [str(word) for word in words],
        cwd=folder, env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SystemExit(f"{words[0]} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return time.perf_counter() - begin, done.stdout + done.stderr


def written(changes: tuple[tuple[str, str], ...], path: Path) -> None:
    text = RIGHT.read_text("utf-8")
    for before, after in changes:
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")


class TrainCheck:
    """Its four commands."""

    def __init__(self, tools: Path, folder: Path) -> None:
        self.tools, self.folder = tools, folder
        self._collect("right.py", "reference")
        run(tools / "traincheck-infer", "-f", "reference", "-o", "learnt.json", folder=folder)
        self.learnt = len((folder / "learnt.json").read_text("utf-8").splitlines())

    def _collect(self, script: str, into: str, *more: str) -> float:
        tool = self.tools / "traincheck-collect"
        words = ("--pyscript", script, "--models-to-track", "model", "--output-dir", into, *more)
        return run(tool, *words, folder=self.folder)[0]

    def judge(self, script: str) -> tuple[float, int]:
        """Seconds of the traced run, and how many invariants it violates."""
        into = f"trace_{script[:-3]}"
        seconds = self._collect(script, into, "--invariants", "learnt.json")
        words = ("-f", into, "-i", "learnt.json")
        _, said = run(self.tools / "traincheck-check", *words, folder=self.folder)
        found = re.search(r"Total failed invariants: (\d+)/", said)
        assert found is not None, said[-500:]
        return seconds, int(found.group(1))


def watched(script: str, folder: Path) -> tuple[float, list[str]]:
    words = (sys.executable, "-m", "trueloop", "watch", "--format", "json", "--output", "found")
    seconds, _ = run(*words, script, folder=folder)
    found = json.loads((folder / "found").read_text("utf-8"))["findings"]
    return seconds, [f"{each['code']}:{each['line']}" for each in found]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", type=Path, help="the folder of TrainCheck's commands")
    tools = parser.parse_args().tools.resolve()
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        written((), folder / "right.py")
        theirs = TrainCheck(tools, folder)
        for number, (what, (code, changes)) in enumerate(PROGRAMS.items()):
            script = f"toy{number}.py"
            written(changes, folder / script)
            alone, _ = run(sys.executable, script, folder=folder)
            ours, found = watched(script, folder)
            seconds, violated = theirs.judge(script)
            rows.append(
                {
                    "program": what,
                    "alone, s": round(alone, 1),
                    "ours, s": round(ours, 1),
                    "ours": " ".join(found) or "nothing",
                    "right": [each.partition(":")[0] for each in found] == ([code] if code else []),
                    "TrainCheck, s": round(seconds, 1),
                    "invariants violated": violated,
                }
            )
            print(table(rows[-1:]), flush=True)
    print(table(rows))
    print(f"TrainCheck has learnt {theirs.learnt} invariants from one run of the correct program")
    save_results("watch_vs_traincheck", {"learnt": theirs.learnt, "programs": rows})


if __name__ == "__main__":
    main()
