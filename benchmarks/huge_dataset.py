"""First batch of a shuffled map-style data set: ours at 10**9 samples, torch's at 10**8.

Each measurement is a process of its own: the seconds from the data set to its first batch, and the
highest memory (resident set of the training process) above what `import torch` takes.

    python benchmarks/huge_dataset.py [--skip-torch]

Prints a table and writes benchmarks/results/huge_dataset.json. Torch's sampler needs several GB.
Linux only, since it reads /proc.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset

RESULTS = Path(__file__).parent / "results" / "huge_dataset.json"
GOAL = {"seconds": 0.5, "megabytes": 100.0}
BATCH_SIZE = 64
OURS, TORCH = "trueloop Feed", "torch DataLoader"
CASES = [(OURS, 10**9, 0), (OURS, 10**9, 2), (OURS, 10**8, 0), (TORCH, 10**8, 0)]


class Points(Dataset[tuple[torch.Tensor, int]]):
    """`size` samples, each computed from its index."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.tensor([index % 997, index % 991], dtype=torch.float32), index % 10


def megabytes(field: str) -> float:
    """VmRSS or VmHWM of this process."""
    status = Path("/proc/self/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    assert found is not None
    return int(found[1]) * 1024 / 1e6


def measure(what: str, size: int, workers: int) -> dict[str, Any]:
    """One first batch, in this process; importing trueloop counts as part of it."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again from here
    before = megabytes("VmRSS")
    start = time.perf_counter()
    if what == OURS:
        from trueloop import Feed

        loader: Any = Feed(Points(size), BATCH_SIZE, shuffle=True, workers=workers)
    else:
        loader = DataLoader(Points(size), BATCH_SIZE, shuffle=True, num_workers=workers)
    batches = iter(loader)
    inputs, _ = next(batches)
    seconds = time.perf_counter() - start
    assert inputs.shape == (BATCH_SIZE, 2)
    return {
        "what": what,
        "samples": size,
        "workers": workers,
        "seconds": round(seconds, 4),
        "megabytes": round(megabytes("VmHWM") - before, 1),
    }


def in_new_process(case: tuple[str, int, int]) -> dict[str, Any]:
    command = [sys.executable, __file__, "--case", json.dumps(case)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--skip-torch", action="store_true", help="measure ours alone")
    parser.add_argument("--case", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(*json.loads(options.case))))
        return
    print(f"{'what':<18}{'samples':>15}{'workers':>9}{'seconds':>10}{'MB above torch':>18}")
    results = []
    for case in CASES:
        if options.skip_torch and case[0] == TORCH:
            continue
        result = in_new_process(case)
        results.append(result)
        print(
            f"{result['what']:<18}{result['samples']:>15,}{result['workers']:>9}"
            f"{result['seconds']:>10.3f}{result['megabytes']:>18.1f}"
        )
    met = all(results[0][name] <= most for name, most in GOAL.items())
    print(f"goal: {GOAL['seconds']} s and {GOAL['megabytes']:.0f} MB: {'met' if met else 'MISSED'}")
    facts = {
        "date": datetime.date.today().isoformat(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "batch_size": BATCH_SIZE,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(
        json.dumps({"goal": GOAL, "met": met, **facts, "results": results}, indent=1) + "\n"
    )


if __name__ == "__main__":
    main()
