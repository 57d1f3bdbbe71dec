"""From how much work in an update on do several CPU threads pay, on a quiet and on a busy machine?

    python benchmarks/threads.py

Networks of growing size are trained for some updates on one thread and on all that torch takes by
default, in turns, so that the machine's drift meets both. First the machine is left as it is; then
a process of ours spins on one core. The best time of many is what a quiet machine takes; the mean
is what a run takes on this one. The work of an update is counted as `trueloop.threads` counts it.
"""

from __future__ import annotations

import argparse
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from common import save_results, table
from torch import Tensor, nn

from trueloop import threads
from trueloop.tasks.images import ResNet
from trueloop.tasks.table import TableNet


def mlp(width: int, batch: int) -> tuple[str, nn.Module, tuple[Tensor, ...]]:
    layers = [nn.Linear(width, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU()]
    model = nn.Sequential(*layers, nn.Linear(width, 3))
    return f"MLP, width {width}, batch {batch}", model, (torch.randn(batch, width),)


def tabular(columns: int, batch: int) -> tuple[str, nn.Module, tuple[Tensor, ...]]:
    sizes = [8] * 4
    inputs = (torch.randn(batch, columns), torch.zeros(batch, 4, dtype=torch.int64))
    return f"table, {columns} columns, batch {batch}", TableNet(columns, sizes, 1), inputs


def images(side: int, width: int, batch: int) -> tuple[str, nn.Module, tuple[Tensor, ...]]:
    model = ResNet(1, (side, side), 10, width=width, mean=[0.5], std=[0.3])
    model = model.to(memory_format=torch.channels_last)
    inputs = (torch.randint(0, 256, (batch, 1, side, side), dtype=torch.uint8),)
    return f"images, {side} pixels, width {width}, batch {batch}", model, inputs


def contenders() -> list[tuple[str, nn.Module, tuple[Tensor, ...]]]:
    return [
        mlp(16, 64),
        mlp(128, 64),
        tabular(8, 32),
        mlp(256, 128),
        tabular(8, 256),
        images(8, 16, 64),
        mlp(1024, 128),
        tabular(50, 256),
        images(28, 8, 32),
        mlp(2048, 256),
        images(28, 32, 32),
        images(28, 32, 128),
    ]


def update_of(model: nn.Module, inputs: tuple[Tensor, ...]) -> Callable[[], None]:
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def update() -> None:
        model(*inputs).square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    return update


def spin() -> None:
    while True:
        pass


@contextmanager
def busy_core(wanted: bool) -> Iterator[None]:
    process = multiprocessing.get_context("spawn").Process(target=spin, daemon=True)
    if wanted:
        process.start()
        time.sleep(0.5)
    yield
    if wanted:
        process.kill()
        process.join()


def times(update: Callable[[], None], counts: tuple[int, int], seconds: float) -> list[list[float]]:
    """Seconds of each update on so many threads, in turns of a few updates."""
    taken: list[list[float]] = [[], []]
    ends = time.perf_counter() + seconds
    turns = 0
    while time.perf_counter() < ends or turns < 6:
        for k, count in enumerate(counts):
            torch.set_num_threads(count)
            update()  # the first one after a change wakes the threads
            for _ in range(3):
                started = time.perf_counter()
                update()
                taken[k].append(time.perf_counter() - started)
        turns += 1
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4.0, help="for each network and machine")
    options = parser.parse_args()
    several = torch.get_num_threads()
    rows: list[dict[str, Any]] = []
    for name, model, inputs in contenders():
        row: dict[str, Any] = {"network": name}
        work = threads.work_of_update(model, inputs)
        row["million operations"] = round(work / 1e6, 1)
        update = update_of(model, inputs)
        for busy in (False, True):
            with busy_core(busy):
                one, all_ = times(update, (1, several), options.seconds)
            if not busy:
                row["ms, one thread"] = round(1000 * min(one), 2)
                row["gain, quiet"] = round(min(one) / min(all_), 2)
            else:
                row["gain, busy core"] = round(statistics.mean(one) / statistics.mean(all_), 2)
        row["threads taken"] = threads.threads_for(work, several)
        rows.append(row)
        print(row, flush=True)
    rows.sort(key=lambda row: float(row["million operations"]))
    print(table(rows))
    save_results(
        "threads",
        {"several": several, "million per thread": threads.WORK_PER_THREAD / 1e6, "rows": rows},
    )


if __name__ == "__main__":
    main()
