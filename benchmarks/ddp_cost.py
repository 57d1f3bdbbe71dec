"""What Trueloop's step costs over DDP written by hand, on two processes.

Both loops train the same model on the same batches of each rank, with AdamW and clipping, in the
same processes, turn by turn: a few updates of one, then as many of the other. What is reported is
the median over the turns of the quotient of their times, taken on the rank that is slower at it;
and that of the processors' time of all ranks, which does not wait where other programs want the
machine. The weights of both must be equal to the last bit at the end.

    python benchmarks/ddp_cost.py                       # two processes on the CPU, gloo
    python benchmarks/ddp_cost.py --device cuda         # one process per GPU of this machine, nccl
    python benchmarks/ddp_cost.py --accumulate 4        # micro-batches per update
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from common import save_results, table
from torch import Tensor, nn
from torch.multiprocessing.spawn import spawn
from torch.nn.parallel import DistributedDataParallel

import trueloop

SIZES = {
    # width, layers, samples per rank and micro-batch
    "small": (64, 2, 32),
    "medium": (256, 4, 256),
    "large": (512, 4, 512),
    "larger": (768, 4, 640),
}
FOR_A_GPU = {"small": (256, 4, 256), "medium": (2048, 8, 2048), "large": (4096, 12, 4096)}
GOAL = 1.03


def make_model(width: int, layers: int, device: torch.device) -> nn.Module:
    torch.manual_seed(0)
    inner = [part for _ in range(layers) for part in (nn.Linear(width, width), nn.GELU())]
    return nn.Sequential(nn.Linear(32, width), nn.GELU(), *inner, nn.Linear(width, 10)).to(device)


Batches = list[tuple[Tensor, Tensor]]


def by_hand(model: nn.Module, batches: Batches, accumulate: int) -> Callable[[], None]:
    """The loop that torch's documentation has."""
    ddp = DistributedDataParallel(model, gradient_as_bucket_view=True)
    fused = torch.optim.AdamW(ddp.parameters(), lr=1e-4, fused=True)
    criterion = nn.CrossEntropyLoss()

    def update() -> None:
        for k, (inputs, targets) in enumerate(batches):
            with contextlib.nullcontext() if k == accumulate - 1 else ddp.no_sync():
                (criterion(ddp(inputs), targets) / accumulate).backward()
        nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
        fused.step()
        fused.zero_grad()

    return update


def ours(model: nn.Module, batches: Batches, accumulate: int) -> Callable[[], None]:
    step = trueloop.Step(
        model,
        torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True),
        trueloop.supervised(nn.CrossEntropyLoss()),
        accumulate=accumulate,
        clip_norm=1.0,
        parallel="ddp",
    )

    def update() -> None:
        for batch in batches:
            step(batch)

    return update


def measure(size: tuple[int, int, int], options: Any, device: torch.device) -> dict[str, Any]:
    """Of one size: both loops' times, turn by turn, the slower rank's."""
    width, layers, samples = size
    generator = torch.Generator().manual_seed(dist.get_rank())
    batches = [
        (
            torch.randn(samples, 32, generator=generator).to(device),
            torch.randint(0, 10, (samples,), generator=generator).to(device),
        )
        for _ in range(options.accumulate)
    ]
    models = [make_model(width, layers, device) for _ in range(2)]
    loops = [by_hand(models[0], batches, options.accumulate)]
    loops.append(ours(models[1], batches, options.accumulate))

    def timed(loop: Callable[[], None], updates: int) -> tuple[float, float]:
        """Seconds per update: on the wall clock, and of the processors."""
        wait(device)
        dist.barrier()
        started, busy = time.perf_counter(), time.process_time()
        for _ in range(updates):
            loop()
        wait(device)
        taken = time.perf_counter() - started, time.process_time() - busy
        found = torch.tensor(taken, dtype=torch.float64).to(device)
        dist.all_reduce(found[:1], op=dist.ReduceOp.MAX)
        dist.all_reduce(found[1:])
        return float(found[0]) / updates, float(found[1]) / updates

    seconds = max(timed(loop, 3)[0] for loop in loops)  # warms up: buckets, allocations
    updates = min(max(round(options.turn / seconds), 1), 200)
    pairs = []
    for turn in range(options.turns):
        first, second = (0, 1) if turn % 2 == 0 else (1, 0)
        found = {k: timed(loops[k], updates) for k in (first, second)}
        pairs.append((found[0], found[1]))
    same = all(torch.equal(a, b) for a, b in zip(*(m.parameters() for m in models), strict=True))
    ratios = sorted(b[0] / a[0] for a, b in pairs)
    return {
        "parameters": sum(p.numel() for p in models[0].parameters()),
        "ms by hand": round(1e3 * statistics.median(a[0] for a, _ in pairs), 3),
        "ms trueloop": round(1e3 * statistics.median(b[0] for _, b in pairs), 3),
        "ratio": round(statistics.median(ratios), 4),
        "middle half": [round(ratios[len(ratios) // 4], 3), round(ratios[-len(ratios) // 4], 3)],
        "processors' ratio": round(statistics.median(b[1] / a[1] for a, b in pairs), 4),
        "weights": "bitwise equal" if same else "DIFFERENT",
    }


def wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def process(rank: int, count: int, port: int, options: Any, results: Any) -> None:
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    device = torch.device("cuda", rank) if options.device == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    else:
        torch.set_num_threads(1)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=count)
    sizes = FOR_A_GPU if device.type == "cuda" else SIZES
    for name in options.sizes or sizes:
        found = measure(sizes[name], options, device)
        if rank == 0:
            results[name] = found
    dist.destroy_process_group()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--processes", type=int, help="2 on the CPU, the GPUs' number on CUDA")
    parser.add_argument("--accumulate", type=int, default=1)
    parser.add_argument("--turns", type=int, default=40)
    parser.add_argument("--turn", type=float, default=0.5, help="seconds of one loop's turn")
    parser.add_argument("--sizes", nargs="*", help="some of small, medium, large, larger")
    options = parser.parse_args()
    count = options.processes or (torch.cuda.device_count() if options.device == "cuda" else 2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with torch.multiprocessing.get_context("spawn").Manager() as manager:
        shared = manager.dict()
        spawn(process, (count, port, options, shared), nprocs=count)
        results = dict(shared)
    torch.set_num_threads(1)  # as in the processes, for what the result file says
    rows = [{"model": name, **found} for name, found in results.items()]
    print(table(rows))
    print(f"goal where an update takes 50 ms or more: a ratio of at most {GOAL}")
    assert all(row["weights"] == "bitwise equal" for row in rows)
    name = "ddp_cost" if options.device == "cpu" else "ddp_cost_cuda"
    name += f"_accumulate{options.accumulate}" if options.accumulate > 1 else ""
    save_results(name, {"processes": count, "turns": options.turns, "goal": GOAL, "rows": rows})


if __name__ == "__main__":
    main()
