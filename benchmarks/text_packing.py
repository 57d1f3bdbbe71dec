"""Conversations packed into contexts, beside one a row: learned tokens of an update and a second.

    python benchmarks/text_packing.py [--conversations 2000] [--clock process]

The conversations are made: a prompt and a response of bytes, whose lengths are log-normal, so that
most are far shorter than the context and a few fill it, as in published instruction data. The model
is the preset tiny with a context of 512; an update has 8 rows. Padded rows are as long as the
longest of their batch. Both are trained in turns; seconds are medians over the rounds.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import torch
from common import save_results, table

from trueloop import Feed, Step, optimizers
from trueloop.tasks.text import Text

CONTEXT, ROWS = 512, 8
CLOCKS = {"wall": time.perf_counter, "process": time.process_time}


def write(path: Path, count: int) -> None:
    draw = random.Random(0)

    def words(middle: float) -> str:
        size = min(int(draw.lognormvariate(0, 0.8) * middle) + 1, CONTEXT)
        return "".join(draw.choice("abcdefgh ") for _ in range(size)) + "."

    lines = ({"prompt": words(40), "response": words(60)} for _ in range(count))
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


class Training:
    """An endless training on the conversations, packed or not."""

    def __init__(self, path: Path, *, pack: bool) -> None:
        torch.manual_seed(0)
        task = Text(Text.Options(context=CONTEXT, pack=pack), data=path)
        self.data = task.splits().train
        model = task.model().train()
        self._step = Step(model, optimizers.adamw(model, 1e-3), task.loss_fn(), clip_norm=1.0)
        self._feed = Feed(self.data, ROWS, shuffle=True)
        self._epoch, self._batches = 0, iter(())
        self.learned: list[int] = []
        self.shares: list[float] = []
        """Of the positions of each batch that hold a token of a conversation."""

    def update(self) -> None:
        batch: Any = next(self._batches, None)
        if batch is None:
            self._batches = self._feed.epoch(self._epoch)
            self._epoch += 1
            batch = next(self._batches)
        self._step(batch)
        self.learned.append(int((batch[1] != -100).sum()))
        self.shares.append(float((batch[0] != 0).double().mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--conversations", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    clock = CLOCKS[given.clock]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chat.jsonl"
        write(path, given.conversations)
        runs = {name: Training(path, pack=name == "packed") for name in ("padded", "packed")}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(given.rounds):
        for name, run in runs.items():
            start = clock()
            run.update()
            seconds[name].append(clock() - start)
    rows = []
    for name, run in runs.items():
        learned = statistics.mean(run.learned)
        rows.append(
            {
                "rows": name,
                "rows of an epoch": len(run.data),
                "learned tokens an update": round(learned),
                "share of positions with a token": round(statistics.mean(run.shares), 3),
                "seconds an update": round(statistics.median(seconds[name]), 3),
                "learned tokens a second": round(learned / statistics.median(seconds[name])),
            }
        )
    print(table(rows))
    settings = {"conversations": given.conversations, "context": CONTEXT, "clock": given.clock}
    print(save_results("text_packing", {**settings, "results": rows}))


if __name__ == "__main__":
    main()
