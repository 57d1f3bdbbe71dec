"""What recomputation saves and costs: a transformer of 12 blocks, each way in a process of its own.

    python benchmarks/recompute.py

Peak memory is that of the process beyond what it had before the first update (resident set, read by
a thread every millisecond), with the gradients and the optimizer's state in it; activations are the
bytes that the forward pass keeps for the backward pass. Time is that of the process, the median of
its updates. Gradients are compared bit by bit, dropout included.
"""

from __future__ import annotations

import argparse
import hashlib
import multiprocessing
import statistics
import threading
import time
from pathlib import Path
from typing import Any

import torch
from common import save_results, table
from torch import Tensor, nn

import trueloop
from trueloop.step.recompute import recompute_blocks

BLOCKS, WIDTH, LENGTH, BATCH = 12, 192, 256, 4
WAYS = {"all kept": None, "every second block": 2, "every block": 1}


def make_model() -> nn.Module:
    torch.manual_seed(0)
    blocks = [
        nn.TransformerEncoderLayer(WIDTH, 4, 4 * WIDTH, dropout=0.1, batch_first=True)
        for _ in range(BLOCKS)
    ]
    return nn.Sequential(nn.Linear(16, WIDTH), *blocks, nn.Linear(WIDTH, 16))


def activations(model: nn.Module, x: Tensor) -> int:
    """Bytes that are kept beside weights, each storage once."""
    weights = {each.untyped_storage().data_ptr() for each in model.parameters()}
    kept: dict[int, Tensor] = {}

    def pack(tensor: Tensor) -> Tensor:
        if (place := tensor.untyped_storage().data_ptr()) not in weights:
            kept[place] = tensor
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        output = model(x)
    del output
    return sum(each.untyped_storage().nbytes() for each in kept.values())


def resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


class Peak:
    """The largest resident set while it is open."""

    def __enter__(self) -> Peak:
        self.bytes, self._ends = resident(), threading.Event()
        self._thread = threading.Thread(target=self._read)
        self._thread.start()
        return self

    def _read(self) -> None:
        while not self._ends.wait(0.001):
            self.bytes = max(self.bytes, resident())

    def __exit__(self, *_: object) -> None:
        self._ends.set()
        self._thread.join()


def measure(recompute: Any, updates: int, answers: Any) -> None:
    torch.set_num_threads(1)
    model, x = make_model(), torch.randn(BATCH, LENGTH, 16)
    recompute_blocks(model, recompute)
    kept = activations(model, x)
    optimizer = trueloop.optimizers.adamw(model, 1e-4)
    step = trueloop.Step(model, optimizer, trueloop.supervised(nn.MSELoss()))
    digest, seconds, before = hashlib.sha256(), [], resident()
    for each in model.parameters():
        each.register_post_accumulate_grad_hook(lambda p: digest.update(p.grad.numpy().tobytes()))
    with Peak() as peak:
        for _ in range(updates):
            started = time.process_time()
            step((x, x))
            seconds.append(time.process_time() - started)
    answers.put(
        {
            "activations MB": round(kept / 1e6, 1),
            "peak MB": round((peak.bytes - before) / 1e6, 1),
            "seconds": round(statistics.median(seconds), 3),
            "gradients": digest.hexdigest()[:12],
        }
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--updates", type=int, default=5)
    given = parser.parse_args()
    context, rows = multiprocessing.get_context("spawn"), []
    for name, recompute in WAYS.items():
        answers = context.Queue()
        process = context.Process(target=measure, args=(recompute, given.updates, answers))
        process.start()
        rows.append({"recompute": name, **answers.get()})
        process.join()
    first = dict(rows[0])
    for row in rows:
        row["activations, all kept = 1"] = round(row["activations MB"] / first["activations MB"], 3)
        row["peak, all kept = 1"] = round(row["peak MB"] / first["peak MB"], 3)
        row["time, all kept = 1"] = round(row["seconds"] / first["seconds"], 3)
        row["same gradients"] = row.pop("gradients") == first["gradients"]
    print(table(rows))
    print("goal: peak activation memory at most 0.6, gradients bitwise the same")
    print(save_results("recompute", {"rows": rows, "updates": given.updates}))


if __name__ == "__main__":
    main()
