"""`python -m gpu NAME`: runs one measurement on the GPU, prints a table, writes its result."""

from __future__ import annotations

import argparse
import importlib
import sys
from typing import Any

import torch
from common import save_results, table

import gpu

NAMES = ("spiral", "gpt", "resnet50", "no_waits", "parity", "watch")


def main() -> int:
    assert gpu.__doc__ is not None
    parser = argparse.ArgumentParser(prog="make bench-gpu", description=gpu.__doc__.splitlines()[0])
    parser.add_argument("name", choices=NAMES)
    parser.add_argument("--device", default="cuda", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.device.startswith("cuda") and not torch.cuda.is_available():
        print(
            "error: torch finds no CUDA device here: run it on a machine with a GPU and a CUDA "
            "build of torch",
            file=sys.stderr,
        )
        return 2
    device = torch.device(given.device)
    measure = importlib.import_module(f"gpu.{given.name}").measure
    rows: list[dict[str, Any]] = measure(device, given.quick)
    print(table(rows))
    if not given.quick:
        print(save_results(f"gpu_{given.name}", {"rows": rows}))
    return 0 if all(row.get("ok", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
