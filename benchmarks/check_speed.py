"""How long `trueloop check` takes for 100,000 lines: cold on one core, from the cache, its help.

The lines are torch's own (`torch/optim`, `torch/nn`, `torch/utils/data`, `torch/distributed`, ...),
which every machine with Trueloop has. Beside it the floor: parsing the same files with `ast`, which
any checker of source has to do.

    python benchmarks/check_speed.py [--lines N]
"""

from __future__ import annotations

import argparse
import ast
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from importlib.util import find_spec
from pathlib import Path

from common import save_results, table

FOLDERS = ("optim", "nn", "utils/data", "distributed", "amp", "ao", "testing", "fx", "utils")


def collect(lines: int, into: Path) -> tuple[int, int]:
    """Copy files of torch until there are so many lines; how many files and lines it became."""
    spec = find_spec("torch")
    assert spec is not None
    assert spec.submodule_search_locations is not None
    root = Path(spec.submodule_search_locations[0])
    files = count = 0
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            target = into / "torch" / path.relative_to(root)
            if target.exists():
                continue
            try:
                text = path.read_text("utf-8")
                ast.parse(text)
            except (SyntaxError, ValueError):
                continue  # written for a newer Python
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            files, count = files + 1, count + text.count("\n")
            if count >= lines:
                return files, count
    return files, count


def timed(command: list[str], cache: Path) -> tuple[float, float]:
    """Wall time and processor time of a command, in seconds."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=False)
    wall = time.perf_counter() - begin
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return wall, used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lines", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        files, lines = collect(given.lines, folder)
        begin = time.process_time()
        for path in folder.rglob("*.py"):
            ast.parse(path.read_bytes())
        floor = time.process_time() - begin
        check = [sys.executable, "-m", "trueloop", "check", str(folder), "--jobs", "1"]
        cold = timed(check, folder / "cache")
        cached = min(timed(check, folder / "cache") for _ in range(3))
        shown = min(
            timed([sys.executable, "-m", "trueloop", "check", "--help"], folder / "cache")
            for _ in range(5)
        )
    rows = [
        {"what": "parsing alone (the floor)", "wall s": None, "processor s": round(floor, 2)},
        {
            "what": "cold, one process",
            "wall s": round(cold[0], 2),
            "processor s": round(cold[1], 2),
        },
        {
            "what": "from the cache",
            "wall s": round(cached[0], 2),
            "processor s": round(cached[1], 2),
        },
        {"what": "--help", "wall s": round(shown[0], 3), "processor s": round(shown[1], 3)},
    ]
    print(f"{files} files, {lines} lines")
    print(table(rows))
    save_results("check_speed", {"files": files, "lines": lines, "rows": rows})


if __name__ == "__main__":
    main()
