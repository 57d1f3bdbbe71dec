"""Tables in memory: what reading one takes, beside the rows themselves.

    python benchmarks/table_memory.py [--rows 1000000 10000000] [--columns 30]

A Parquet file of so many rows is made (float32 columns and a class of two, row groups of 131,072
rows). A new process imports torch, polars and trueloop, opens the file as `trueloop train table
--streaming never` does, statistics included, and takes a batch. Its highest resident memory above
that of the imports is compared with the encoded rows: float32 numbers and int64 labels.

Prints a table, writes benchmarks/results/table_memory.json, and ends with 1 where the goal (1.3
times the rows) is missed. Linux only, since it reads /proc.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from common import save_results, table
from table_large import highest

GOAL = 1.3
_GROUP = 131_072


def make(path: Path, rows: int, columns: int) -> None:
    import polars as pl

    draws = np.random.default_rng(0)
    found = {f"x{k}": draws.standard_normal(_GROUP, dtype=np.float32) for k in range(columns)}
    found["y"] = (found["x0"] > 0.5).astype(np.int8)
    frame = pl.DataFrame(found).lazy()
    every = pl.concat([frame] * -(-rows // _GROUP)).head(rows)
    every.sink_parquet(path, row_group_size=_GROUP)


def measure(path: Path) -> dict[str, Any]:
    """What reading the file takes, in this process."""
    import polars as pl
    import torch

    from trueloop import Feed
    from trueloop.tasks.table import Table

    torch.set_num_threads(1)
    pl.DataFrame({"x": [1.0]}).lazy().sum().collect()
    base, began = highest(), time.process_time()
    task = Table(Table.Options(target="y", streaming="never"), data=path, seed=0)
    task.quiet = True
    splits = task.splits()
    next(iter(Feed(splits.train, 256, shuffle=True)))
    seconds, above = time.process_time() - began, highest() - base
    parts = [part for (x, c), y in (splits.train, splits.val, splits.test) for part in (x, c, y)]
    size = sum(part.nbytes for part in parts) / 1e6
    return {
        "rows": sum(len(part) for part in parts[2::3]),
        "base MB": round(base, 1),
        "the rows MB": round(size, 1),
        "above the base MB": round(above, 1),
        "times the rows": round(above / size, 3),
        "seconds of processor": round(seconds, 1),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 10_000_000])
    parser.add_argument("--columns", type=int, default=30)
    parser.add_argument("--case", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case:
        print(json.dumps(measure(options.case)))
        return 0
    found = []
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRUELOOP_CACHE"] = folder
        for rows in options.rows:
            path = Path(folder) / "table.parquet"
            make(path, rows, options.columns)
            done = subprocess.run(
                [sys.executable, __file__, "--case", str(path)], capture_output=True, text=True
            )
            if done.returncode:
                raise SystemExit(done.stderr)
            found.append(json.loads(done.stdout.splitlines()[-1]))
    print(table(found))
    met = all(each["times the rows"] <= GOAL for each in found)
    print(f"goal: {GOAL} times the rows: {'met' if met else 'MISSED'}")
    print(save_results("table_memory", {"goal": GOAL, "met": met, "cases": found}))
    return 0 if met else 1


if __name__ == "__main__":
    raise SystemExit(main())
