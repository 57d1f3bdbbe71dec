"""What an update costs when all of it is one compiled graph: spiral, one thread, in turns.

    python benchmarks/compiled_step.py

- floor: forward, backward and a fused Adam step on one fixed batch; no data, no clip, no record
- trueloop: Feed and Step with the same model, optimizer, clip and batch size, in plain torch
- trueloop, compiled: the same with `compile="step"`
- by hand: DataLoader(TensorDataset), Adam, clip_grad_norm_, zero_grad, as most people write it
- by hand, compiled: the same with `torch.compile(model)`

Each round runs them one after the other, so that the machine's drift meets all of them; the
figures are medians over rounds, the ratios medians of each round's own ratios. An epoch has 31 full
batches and a short one, so that two graphs are compiled. Beside them stand the seconds that a new
process takes until its first compiled update, with the compiler's cache empty and then full.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import torch
from common import save_results, table
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import trueloop

BATCH = 64
SAMPLES = 2000
UPDATES_PER_EPOCH = -(-SAMPLES // BATCH)
Epoch = Callable[[int], None]


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 3)
    )


def floor(x: Tensor, y: Tensor) -> Epoch:
    model, criterion = make_model(), nn.CrossEntropyLoss()
    parameters = list(model.parameters())
    optimizer = torch.optim.Adam(parameters, lr=1e-3, fused=True)
    inputs, targets = x[:BATCH], y[:BATCH]

    def epoch(number: int) -> None:
        for _ in range(UPDATES_PER_EPOCH):
            criterion(model(inputs), targets).backward()
            optimizer.step()
            for parameter in parameters:
                parameter.grad = None

    return epoch


def by_hand(x: Tensor, y: Tensor, compiled: bool) -> Epoch:
    model, criterion = make_model(), nn.CrossEntropyLoss()
    call = torch.compile(model) if compiled else model
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)

    def epoch(number: int) -> None:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(call(inputs), targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    return epoch


def ours(x: Tensor, y: Tensor, compile: str | None) -> Epoch:
    model = make_model()
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, 1e-3),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=1.0,
        compile=compile,
    )
    train = trueloop.Feed((x, y), BATCH, shuffle=True)

    def epoch(number: int) -> None:
        for batch in train.epoch(number):
            step(batch)
        step.end_epoch()

    return epoch


_FIRST_UPDATE = """
import sys, time
sys.path.insert(0, sys.argv[1])
import torch
from torch import nn
import trueloop
from compiled_step import make_model
torch.set_num_threads(1)
model = make_model()
step = trueloop.Step(model, trueloop.optimizers.adam(model, 1e-3),
    trueloop.supervised(nn.CrossEntropyLoss()), clip_norm=1.0, compile="step")
batch = torch.randn(64, 2), torch.randint(0, 3, (64,))
for _ in range(3):
    step(batch)
started = time.perf_counter()
step(batch)
print(time.perf_counter() - started, time.time() - float(sys.argv[2]))
"""


def starts() -> dict[str, float]:
    """Seconds of the first compiled update in a new process, and from its start until then, without
    and with the cache."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        for name in ("cold", "warm"):
            given = [os.path.dirname(os.path.abspath(__file__)), str(time.time())]
            done = subprocess.run(
                [sys.executable, "-c", _FIRST_UPDATE, *given],
                env={**os.environ, "TORCHINDUCTOR_CACHE_DIR": folder},
                capture_output=True,
                text=True,
                check=True,
            )
            alone, whole = map(float, done.stdout.split())
            found[f"first compiled update, {name} cache, s"] = round(alone, 2)
            found[f"start of the process to its end, {name} cache, s"] = round(whole, 2)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--epochs", type=int, default=6, help="per round and contender")
    parser.add_argument("--no-start", action="store_true", help="leave the cold start out")
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(SAMPLES, 2, generator=generator)
    y = torch.randint(0, 3, (SAMPLES,), generator=generator)
    contenders = {
        "floor": floor(x, y),
        "trueloop": ours(x, y, None),
        "trueloop, compiled": ours(x, y, "step"),
        "by hand": by_hand(x, y, False),
        "by hand, compiled": by_hand(x, y, True),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(options.rounds + 1):
        for name, epoch in contenders.items():
            started = time.perf_counter()
            for number in range(options.epochs):
                epoch(turn * options.epochs + number)
            if turn:  # the first round compiles and warms up
                taken = time.perf_counter() - started
                seconds[name].append(taken / options.epochs / UPDATES_PER_EPOCH)

    def ratio(a: str, b: str) -> float:
        return statistics.median(p / q for p, q in zip(seconds[a], seconds[b], strict=True))

    rows = [
        {
            "loop": name,
            "µs per update": round(statistics.median(values) * 1e6, 1),
            "updates per second": round(1 / statistics.median(values)),
            "time, floor = 1": round(ratio(name, "floor"), 3),
        }
        for name, values in seconds.items()
    ]
    goals = {
        "compiled: time over the floor's (goal: at most 0.70)": round(
            ratio("trueloop, compiled", "floor"), 3
        ),
        "compiled: speed over the loop by hand's with torch.compile(model) (goal: at least 1.5)": (
            round(ratio("by hand, compiled", "trueloop, compiled"), 3)
        ),
    }
    start = {} if options.no_start else starts()
    print(table(rows))
    for name, value in {**goals, **start}.items():
        print(f"{name}: {value}")
    results = {"rows": rows, "goals": goals, "start": start, "rounds": options.rounds}
    save_results("compiled_step", results)


if __name__ == "__main__":
    main()
