"""A checkpoint of several ranks: bytes and seconds of each, and how long it holds them up.

    python benchmarks/ranks_checkpoint.py

192 MB of state (16 million parameters and AdamW's moments, float32), saved in one process, and by 2
and 4 ranks of this machine with ddp and fsdp; with ddp also with rank 0 writing all of it, as
scripts do by hand. `holds up` is the time of `Checkpoints.save`, after which the training goes on;
`durable` is the time until the checkpoint is on the disk and every byte was read again; `resumed`
is the time to verify it and to take it up on as many ranks. Each is the median of five, of the
slowest rank. One disk and few cores: ranks on hosts of their own write at the same time. `load` is
how many processes wanted a core when the measurement began: compare rows of about the same load.

Prints a table and writes benchmarks/results/ranks_checkpoint.json.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from common import save_results, table
from torch import nn

import trueloop
from trueloop import ranks
from trueloop.checkpoint import capture, load_checkpoint, restore, store, tensor_shards

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from on_ranks import on_ranks

WIDTH, LAYERS = 1024, 16
ROUNDS = 5


def make(strategy: str | None) -> tuple[trueloop.Step, trueloop.Feed]:
    torch.manual_seed(0)
    model = nn.Sequential(*[nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS)])
    step = trueloop.Step(
        model,
        torch.optim.AdamW(model.parameters(), 1e-3),
        trueloop.supervised(nn.MSELoss()),
        parallel=strategy,
    )
    x = torch.rand(8, WIDTH)
    step((x, x))
    return step, trueloop.Feed((x, x), 8)


def seconds(work: Callable[[], object]) -> float:
    """Of the slowest rank, all beginning at once."""
    ranks.barrier("the start of a measurement")
    started = time.perf_counter()
    work()
    return max(ranks.gathered(time.perf_counter() - started))


def all_by_main(turns: Any, tensor: torch.Tensor) -> Any:
    """In the place of the division: rank 0 writes everything."""
    return tensor_shards.shard_of(tensor) if ranks.is_main() else None


def measured(folder: Path, strategy: str | None, rank_0_alone: bool) -> dict[str, float]:
    if rank_0_alone:
        tensor_shards._Turns.mine = all_by_main  # type: ignore[method-assign]
    step, feed = make(strategy)
    saved = trueloop.Checkpoints(folder, keep_last=1)
    held, durable = [], []
    for k in range(ROUNDS + 1):
        state = capture(step, feed)
        begun = time.perf_counter()
        held.append(seconds(lambda state=state, k=k: saved.save(state, (0, k, k))))
        saved.wait()
        durable.append(max(ranks.gathered(time.perf_counter() - begun)))
    resumed = [seconds(lambda: restore(load_checkpoint(folder), step, feed)) for _ in range(ROUNDS)]
    (path,) = store.names_in(folder)
    sizes = {name: said["size"] for name, said in store.manifest(folder / path)["files"].items()}
    of_ranks = [size for name, size in sizes.items() if name.endswith(".distcp")]
    return {
        "whole, MB": round(sum(sizes.values()) / 1e6, 1),
        "largest rank, MB": round(max(of_ranks or sizes.values()) / 1e6, 1),
        "holds up, s": round(statistics.median(held[1:]), 4),
        "durable, s": round(statistics.median(durable[1:]), 3),
        "resumed, s": round(statistics.median(resumed), 3),
    }


def main() -> None:
    cases: list[tuple[int, str | None, bool]] = [(1, None, False)]
    for count in (2, 4):
        cases += [(count, "ddp", True), (count, "ddp", False), (count, "fsdp", False)]
    rows = []
    load = os.getloadavg()[0]
    for count, strategy, alone in cases:
        with tempfile.TemporaryDirectory() as folder:
            found, *_ = on_ranks(count, measured, Path(folder), strategy, alone, seconds=280)
        name = "one process" if strategy is None else strategy + ", rank 0 writes" * alone
        rows.append({"ranks": count, "strategy": name, **found})
        print(rows[-1], flush=True)
    print(table(rows))
    print(save_results("ranks_checkpoint", {"rows": rows, "load": round(load, 1)}))


if __name__ == "__main__":
    main()
