"""What a step costs beside the loop by hand and the bare computation: spiral, one thread, in turns.

    python benchmarks/step_overhead.py

- by hand: DataLoader(TensorDataset), Adam, clip_grad_norm_, zero_grad, as most people write it
- trueloop: Feed and Step with the same model, optimizer, clip and batch size
- floor: forward, backward and a fused Adam step on one fixed batch; no data, no clip, no record

Each round runs the three one after the other, so that the machine's drift meets all of them; the
figures are medians over rounds, the ratios medians of each round's own ratios. The hand-written
loop with `fused=True` is shown beside, to say what of the gain is the optimizer's.
"""

from __future__ import annotations

import argparse
import statistics
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


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(
        nn.Linear(2, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 3)
    )


def by_hand(x: Tensor, y: Tensor, fused: bool | None) -> Callable[[int], None]:
    model, criterion = make_model(), nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, fused=fused)
    loader = DataLoader(TensorDataset(x, y), batch_size=BATCH, shuffle=True)

    def epoch(number: int) -> None:
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = criterion(model(inputs), targets)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

    return epoch


def ours(x: Tensor, y: Tensor) -> Callable[[int], None]:
    model = make_model()
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, 1e-3),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=1.0,
    )
    train = trueloop.Feed((x, y), BATCH, shuffle=True)

    def epoch(number: int) -> None:
        for batch in train.epoch(number):
            step(batch)
        step.end_epoch()

    return epoch


def floor(x: Tensor, y: Tensor) -> Callable[[int], None]:
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--epochs", type=int, default=6, help="per round and contender")
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(SAMPLES, 2, generator=generator)
    y = torch.randint(0, 3, (SAMPLES,), generator=generator)
    contenders = {
        "by hand": by_hand(x, y, None),
        "by hand, fused Adam": by_hand(x, y, True),
        "trueloop": ours(x, y),
        "floor": floor(x, y),
    }
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for turn in range(options.rounds + 1):
        for name, epoch in contenders.items():
            started = time.perf_counter()
            for number in range(options.epochs):
                epoch(turn * options.epochs + number)
            if turn:  # the first round warms up
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
            "speed, by hand = 1": round(ratio("by hand", name), 3),
        }
        for name, values in seconds.items()
    ]
    goals = {
        "trueloop's updates per second over the loop by hand's (goal: at least 1.7)": round(
            ratio("by hand", "trueloop"), 3
        ),
        "trueloop's time over the floor's (goal: at most 1.35)": round(
            ratio("trueloop", "floor"), 3
        ),
    }
    print(table(rows))
    for name, value in goals.items():
        print(f"{name}: {value}")
    save_results("step_overhead", {"rows": rows, "goals": goals, "rounds": options.rounds})


if __name__ == "__main__":
    main()
