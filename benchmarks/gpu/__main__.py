"""`python -m gpu NAME ...`: measures on the GPU, prints tables, writes the results."""

from __future__ import annotations

import argparse
import gc
import importlib
import sys
from typing import Any

import torch
from common import save_results, table

import gpu

NAMES = ("spiral", "gpt", "resnet50", "no_waits", "parity", "watch", "recompute", "gains")


def main() -> int:
    assert gpu.__doc__ is not None
    parser = argparse.ArgumentParser(prog="make bench-gpu", description=gpu.__doc__.splitlines()[0])
    parser.add_argument("names", nargs="+", choices=NAMES, metavar="NAME", help=", ".join(NAMES))
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
    return max(_measured(name, device, given.quick) for name in given.names)


def _measured(name: str, device: torch.device, quick: bool) -> int:
    print(f"{name}:", flush=True)
    rows: list[dict[str, Any]] = importlib.import_module(f"gpu.{name}").measure(device, quick)
    print(table(rows))
    if not quick:
        print(save_results(f"gpu_{name}", {"rows": rows}), flush=True)
    gc.collect()
    if device.type == "cuda":
        torch.cuda.empty_cache()
    torch.compiler.reset()
    return 0 if all(row.get("ok", True) for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
