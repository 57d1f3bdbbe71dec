"""The formulas of scale_arithmetic.py beside real ranks: what each holds, sends and saves.

    python benchmarks/scale_checks.py

2 and 4 ranks on this machine train a stack of equal layers with `Step`, by gloo. Bytes sent are
those that the kernel has counted on each rank's connections (`wire.py`); memory is the most of the
process that is resident during an update, above what it was before the model, with an allocator
that gives back at once what is freed; a checkpoint is the sizes of its files.

gloo makes a reduce-scatter of an all-reduce, which sends twice as much as the formula's: where one
is part of an update, the formula is taken with gloo's.

Prints a table and writes benchmarks/results/scale_checks.json. Linux only.
"""

from __future__ import annotations

import ctypes
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import scale_arithmetic as paper
import torch
import wire
from common import save_results, table
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import trueloop
from trueloop import ranks

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from on_ranks import on_ranks

WIDTH, BLOCKS = 512, 16
PARAMETERS = WIDTH * WIDTH * BLOCKS
_MMAP_THRESHOLD, _TRIM_THRESHOLD = -3, -1
"""Of mallopt: with both small, glibc gives memory back to the system when it is freed."""


def model(width: int = WIDTH) -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(*[nn.Linear(width, width, bias=False) for _ in range(BLOCKS)])


def training(parallel: Any, accumulate: int = 1, width: int = WIDTH) -> Callable[[], Any]:
    """One update of `Step`; `parallel` "by hand" is the plain loop around DDP."""
    warnings.filterwarnings("ignore", category=FutureWarning)  # torch's own names of collectives
    net, data = model(width), (torch.zeros(2, width), torch.ones(2, width))
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    if parallel == "by hand":
        wrapped = DistributedDataParallel(net, gradient_as_bucket_view=True)

        def update() -> None:
            nn.functional.mse_loss(wrapped(data[0]), data[1]).backward()
            optimizer.step()
            optimizer.zero_grad()

        return update
    loss = trueloop.supervised(nn.MSELoss())
    step = trueloop.Step(net, optimizer, loss, parallel=parallel, accumulate=accumulate)
    return lambda: [step(data) for _ in range(accumulate)]


def sent_per_update(parallel: Any, accumulate: int, width: int = WIDTH) -> float:
    """On each rank."""
    updates = 10
    update = training(parallel, accumulate, width)
    for _ in range(3):  # DDP arranges its buckets anew after the first
        update()
    before = wire.sent()
    for _ in range(updates):
        update()
    found = (wire.sent() - before) / updates
    ranks.barrier("the other ranks' counts")
    return found


def held(parallel: Any, accumulate: int = 1) -> float:
    """Bytes at the peak of an update, on each rank."""
    mallopt = ctypes.CDLL(None).mallopt
    mallopt(_MMAP_THRESHOLD, 1 << 16)
    mallopt(_TRIM_THRESHOLD, 1 << 16)
    training(parallel, width=16)()  # what torch itself loads and keeps
    before = _resident("VmRSS")
    update = training(parallel, accumulate)
    update()
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins here
    for _ in range(2):
        update()
    return _resident("VmHWM") - before


def _resident(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    [line] = [line for line in lines if line.startswith(f"{name}:")]
    return 1024 * int(line.split()[1])


def saved(parallel: Any, folder: str) -> dict[str, int]:
    """A checkpoint's files and their bytes, seen by each rank."""
    net = model()
    optimizer = torch.optim.AdamW(net.parameters(), fused=True)
    loss = trueloop.supervised(nn.MSELoss())
    step = trueloop.Step(net, optimizer, loss, parallel=parallel)
    feed = trueloop.Feed((torch.zeros(8, WIDTH), torch.ones(8, WIDTH)), batch_size=8)
    checkpoints = trueloop.Checkpoints(folder, asynchronous=False, every="1 update")
    with checkpoints.writing():
        for data in feed.epoch(0):
            step(data)
            checkpoints.keep(step, feed)
    ranks.barrier("the other ranks' files")
    [newest] = Path(folder).glob("e*")
    return {file.name: file.stat().st_size for file in newest.iterdir()}


# ------------------------------------------------------------------------------- on paper


def of_gloo(strategy: str, count: int, group: int, of: paper.Dtypes, accumulate: int) -> float:
    """The formula's bytes, with a reduce-scatter that is an all-reduce."""
    total = paper.sent(strategy, PARAMETERS, count, group, of, accumulate).total
    if strategy == "ddp":
        return total
    return total + paper.all_gather(PARAMETERS * of.reduced, group if strategy == "hsdp" else count)


def strategies(count: int) -> list[tuple[str, str, Any, int, paper.Dtypes]]:
    """(name, strategy of the formulas, parallel=, ranks that share a copy, dtypes)."""
    bf16 = trueloop.FSDPOptions(param_dtype="bf16")
    found = [
        ("ddp", "ddp", "ddp", count, paper.WHOLE),
        ("fsdp", "fsdp", "fsdp", count, paper.WHOLE),
        ("fsdp, gathered as bf16", "fsdp", bf16, count, paper.MIXED),
    ]
    if count == 4:
        copies = trueloop.FSDPOptions(replicate=2)
        found.append(("hsdp, 2 copies of 2", "hsdp", copies, 2, paper.WHOLE))
    return found


def row(what: str, count: int, wanted: float, found: float) -> dict[str, Any]:
    return {
        "what": what,
        "ranks": count,
        "on paper": round(wanted),
        "counted": round(found),
        "counted / paper": round(found / wanted, 3),
    }


def rows(count: int) -> list[dict[str, Any]]:
    """The checks with so many ranks."""
    found = []
    for name, strategy, parallel, group, of in strategies(count):
        for accumulate in (1, 3):
            wanted = of_gloo(strategy, count, group, of, accumulate)
            counted = max(on_ranks(count, sent_per_update, parallel, accumulate))
            words = f"{name}: bytes sent per update of {accumulate} micro-batches"
            found.append(row(words, count, wanted, counted))
        wanted = paper.memory(strategy, PARAMETERS, BLOCKS, count, group, of).device
        found.append(row(f"{name}: memory", count, wanted, max(on_ranks(count, held, parallel))))
        if of is paper.WHOLE:
            with tempfile.TemporaryDirectory() as folder:
                files = on_ranks(count, saved, parallel, folder)[0]
            wanted = paper.checkpoint_bytes(PARAMETERS, of)
            found.append(row(f"{name}: checkpoint", count, wanted, sum(files.values())))
            most = max(size for file, size in files.items() if file.endswith(".distcp"))
            found.append(row(f"{name}: its largest file", count, wanted / count, most))
    return found


def own_bytes(count: int) -> float:
    """What `Step` sends per update beside what plain DDP sends."""
    ours = on_ranks(count, sent_per_update, "ddp", 1, 16)
    plain = on_ranks(count, sent_per_update, "by hand", 1, 16)
    return max(ours) - max(plain)


def main() -> int:
    found = rows(2) + rows(4)
    print(table(found))
    own = {count: round(own_bytes(count)) for count in (2, 4)}
    print(f"\nbytes per update that Step sends beside plain DDP, by ranks: {own}")
    print(save_results("scale_checks", {"parameters": PARAMETERS, "rows": found, "own": own}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
