"""What the doctor costs a run of `fit`: spiral, one thread, runs with and without it in turns.

    python benchmarks/doctor_cost.py

The setting is that of side_by_side/spiral.py: a small network whose update takes about half a
millisecond, which is where watching weighs most. Each round trains twice, with
`sinks=[trueloop.Doctor()]` and without, the order changing from round to round. Times are those of
the processor in the thread that trains, so that what else the machine does is left out; the figures
are medians over rounds, the ratios medians of each round's own ratios. The first 50 updates are
watched whole, then ever fewer, and after 500 of updates as fast as these none.
"""

from __future__ import annotations

import argparse
import statistics
import time
from contextlib import ExitStack

import torch
from common import save_results, table
from side_by_side.spiral import JOB
from torch import Tensor, nn

import trueloop
from trueloop.doctor.live.entry.fit_sink import FIRST as WATCHED
from trueloop.doctor.live.sampling_schedule import FIRST


class Clock:
    """A sink that notes when the run was where."""

    def __init__(self) -> None:
        self.started = time.thread_time()
        self.at: dict[int, float] = {}

    def __call__(self, record: trueloop.StepRecord | trueloop.EvalRecord) -> None:
        if isinstance(record, trueloop.StepRecord):
            self.at[record.update] = time.thread_time() - self.started


def run(x: Tensor, y: Tensor, epochs: int, *, watched: bool) -> tuple[dict[str, float], Tensor]:
    """Seconds of one training by its parts, and a weight that it ends with."""
    model = JOB.model()
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, 1e-3),
        trueloop.supervised(nn.CrossEntropyLoss()),
        clip_norm=1.0,
    )
    train = trueloop.Feed((x, y), JOB.batch, shuffle=True)
    val = trueloop.Feed((x[:200], y[:200]), 200)
    with ExitStack() as stack:
        sinks = [stack.enter_context(trueloop.Doctor(show=False))] if watched else []
        clock = Clock()
        trueloop.fit(step, train, val, epochs=epochs, sinks=[*sinks, clock], progress=False)
    last = max(clock.at)
    parts = {
        f"the first {FIRST} updates": clock.at[FIRST] / FIRST,
        f"those to {WATCHED:,}": (clock.at[WATCHED] - clock.at[FIRST]) / (WATCHED - FIRST),
        "those after": (clock.at[last] - clock.at[WATCHED]) / (last - WATCHED),
        "the whole run": clock.at[last] / last,
    }
    return parts, next(model.parameters()).detach().clone()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--epochs", type=int, default=320, help="per training")
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(JOB.samples, 2, generator=generator)
    y = torch.randint(0, 3, (JOB.samples,), generator=generator)
    plain: list[dict[str, float]] = []
    watched: list[dict[str, float]] = []
    for turn in range(options.rounds + 1):
        seconds = {}
        weights = {}
        for eyes in (False, True) if turn % 2 else (True, False):
            seconds[eyes], weights[eyes] = run(x, y, options.epochs, watched=eyes)
        assert torch.equal(weights[False], weights[True])
        if turn:  # the first round warms up
            plain.append(seconds[False])
            watched.append(seconds[True])
    rows = []
    for part in plain[0]:
        without, with_it = [p[part] for p in plain], [w[part] for w in watched]
        rows.append(
            {
                "part": part,
                "µs per update without": round(statistics.median(without) * 1e6, 1),
                "with the doctor": round(statistics.median(with_it) * 1e6, 1),
                "ratio": round(
                    statistics.median(b / a for a, b in zip(without, with_it, strict=True)), 4
                ),
            }
        )
    print(f"{options.epochs * JOB.batches:,} updates a training")
    print(table(rows))
    save_results("doctor_cost", {"rows": rows, "rounds": options.rounds, "epochs": options.epochs})


if __name__ == "__main__":
    main()
