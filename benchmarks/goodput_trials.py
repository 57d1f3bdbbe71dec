"""What failures cost, measured: runs on 2 ranks that are killed at random and resume, beside the
simulator's word on them.

    python benchmarks/goodput_trials.py [--trials 50] [--updates 300] [--every 30] [--mean 5]
                                        [--seed 0]

Each trial is a run of `fit` on two processes. A rank is killed with SIGKILL at exponential times
(`--mean` seconds apart, restarts included); the other one is ended, both are started again, and the
run goes on from its newest checkpoint until it is finished. Processes are forked from one that has
imported torch, which saves torchrun's seconds.

What `goodput_simulator.py` is fed with comes from other runs, one of them before every few trials:
left alone (the time of an update, of a checkpoint's stall and of its writing, of the start and the
end), or killed once in the middle (the time of a restart). Compared are the goodput of all trials
together, the formula's, and the simulator's for the very same kills.

Prints a table, writes benchmarks/results/goodput_trials.json, and ends with 1 if formula or
simulator is off by more than 10%, or if a run does not end with the weights of one left alone.
"""

from __future__ import annotations

import argparse
import hashlib
import math
import multiprocessing
import os
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from common import save_results, table
from goodput_simulator import Costs, expected_seconds, failure_times, simulate
from torch import nn

import trueloop
from trueloop import ranks

RANKS = 2
WIDTH, LAYERS, BATCH = 384, 4, 256
LIMIT = 120.0
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["torch", "torch.distributed", "trueloop.loop", "torch._dynamo"])


# ------------------------------------------------------------------------------- one rank


class Timed(trueloop.Checkpoints):
    """Notes how long each save holds the training up."""

    def save(self, *arguments: Any) -> None:
        note("save")
        super().save(*arguments)
        note("saved")


def note(*words: Any) -> None:
    """A line in the run's notes, with the time, from rank 0."""
    if ranks.is_main():
        line = " ".join(map(str, [time.time(), *words]))
        os.write(_notes, f"{line}\n".encode())


_notes = -1


def train(folder: Path, updates: int, every: int, environment: dict[str, str]) -> None:
    """Begin the run in `folder`, or go on with it."""
    global _notes
    os.environ.update(environment)
    torch.set_num_threads(1)
    _notes = os.open(folder / "notes", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with ranks.joined(torch.device("cpu")):
        trueloop.seed_everything(0)
        layers = [nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU()) for _ in range(LAYERS)]
        model = nn.Sequential(*layers, nn.Linear(WIDTH, 1))
        data = torch.Generator().manual_seed(1)
        inputs = torch.randn(BATCH * updates, WIDTH, generator=data)
        feed = trueloop.Feed((inputs, inputs[:, :1].sin()), BATCH, shuffle=True)
        step = trueloop.Step(
            model,
            torch.optim.AdamW(model.parameters(), lr=1e-3),
            trueloop.supervised(nn.MSELoss()),
            parallel="ddp",
        )
        checkpoints = Timed(folder / "checkpoints", keep_best=None, every=f"{every} updates")
        state = None
        if trueloop.checkpoint.has_checkpoint(checkpoints.folder):
            state = trueloop.load_checkpoint(checkpoints.folder)
        trueloop.fit(
            step,
            feed,
            epochs=1,
            checkpoints=checkpoints,
            resume_from=state,
            sinks=[lambda record: note("update", getattr(record, "update", "end"))],
            progress=False,
        )
        if ranks.is_main():
            weights = b"".join(p.detach().numpy().tobytes() for p in model.parameters())
            (folder / "weights").write_text(hashlib.sha256(weights).hexdigest())


# ------------------------------------------------------------------------------- the launcher


@dataclass
class Seen:
    """What a run looked like from outside, in seconds since it was begun."""

    seconds: float = 0.0
    kills: list[float] = field(default_factory=list)
    saved: list[float] = field(default_factory=list)
    """When each checkpoint was whole."""
    notes: list[tuple[float, str]] = field(default_factory=list)
    weights: str = ""

    def at(self, kind: str) -> list[float]:
        return [moment for moment, what in self.notes if what.split()[0] == kind]


def run(folder: Path, options: argparse.Namespace, kills: Iterator[float]) -> Seen:
    """A run until its end, one rank killed at each of the moments `kills`."""
    folder.mkdir()
    seen, began, names = Seen(), time.time(), set()
    kill = next(kills, math.inf)
    group = _start(folder, options)
    try:
        while True:
            now = time.time() - began
            for name in _names(folder) - names:
                names.add(name)
                seen.saved.append(now)
            if now >= kill:
                group[len(seen.kills) % RANKS].kill()
                seen.kills.append(now)
                kill = next(kills, math.inf)
                _end(group)
                group = _start(folder, options)
            if not any(process.is_alive() for process in group):
                break
            if now > LIMIT:
                raise TimeoutError(f"the run in {folder} has not ended after {LIMIT:.0f} s")
            time.sleep(0.002)
        if any(process.exitcode for process in group):
            raise RuntimeError(f"exit statuses {[process.exitcode for process in group]}")
    finally:
        _end(group)
    seen.seconds = time.time() - began
    for line in (folder / "notes").read_text().splitlines():
        moment, _, what = line.partition(" ")
        seen.notes.append((float(moment) - began, what))
    seen.weights = (folder / "weights").read_text()
    return seen


def _start(folder: Path, options: argparse.Namespace) -> list[Any]:
    store = dist.TCPStore("127.0.0.1", 0, is_master=True, timeout=timedelta(seconds=60))
    processes = []
    for rank in range(RANKS):
        environment = {
            "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_WORLD_SIZE": RANKS,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": store.port,
            "TORCHELASTIC_USE_AGENT_STORE": "True",
        }  # fmt: skip
        words = {name: str(value) for name, value in environment.items()}
        process = _CONTEXT.Process(
            target=train, args=(folder, options.updates, options.every, words)
        )
        process.start()
        processes.append(process)
    _stores[:] = [store]  # it lives as long as the processes
    return processes


_stores: list[Any] = []


def _end(group: list[Any]) -> None:
    for process in group:
        if process.is_alive():
            process.kill()
    for process in group:
        process.join()


def _names(folder: Path) -> set[str]:
    with suppress(FileNotFoundError):
        return {name for name in os.listdir(folder / "checkpoints") if re.match(r"e\d", name)}
    return set()


# ------------------------------------------------------------------------------- measuring


@dataclass
class Measured:
    """Of the runs that feed the simulator: seconds."""

    update: list[float] = field(default_factory=list)
    stall: list[float] = field(default_factory=list)
    write: list[float] = field(default_factory=list)
    start: list[float] = field(default_factory=list)
    restarts: list[float] = field(default_factory=list)
    end: list[float] = field(default_factory=list)

    def left_alone(self, seen: Seen) -> None:
        updates = [m for m, what in seen.notes if what.startswith("update") and "end" not in what]
        begins, ends = seen.at("save"), seen.at("saved")
        stalls = [end - begin for begin, end in zip(begins, ends, strict=True)]
        between = sum(s for s, b in zip(stalls, begins, strict=True) if b < updates[-1])
        update = (updates[-1] - updates[0] - between) / (len(updates) - 1)
        self.update.append(update)
        self.stall += stalls[:-1]
        self.write += [w - end for w, end in zip(seen.saved[:-1], ends[:-1], strict=True)]
        self.start.append(updates[0] - update)
        self.end.append(seen.seconds - max(seen.saved[-2], updates[-1]))

    def killed_once(self, seen: Seen) -> None:
        [kill] = seen.kills
        first = min(moment for moment in seen.at("update") if moment > kill)
        self.restarts.append(first - kill - self.update[-1])

    def together(self, others: Iterable[Measured]) -> Measured:
        """All that was measured by them and here."""
        parts = [self, *others]
        names = [each.name for each in fields(self)]
        return Measured(**{n: [v for part in parts for v in getattr(part, n)] for n in names})

    def costs(self, every: int, mean: float) -> Costs:
        means = {
            name: statistics.fmean(getattr(self, name))
            for name in ("update", "stall", "write", "start", "end")
        }
        return Costs(**means, restarts=tuple(self.restarts), every=every, mean=mean)


# ------------------------------------------------------------------------------- the trials


def calibrate(measured: list[Measured], folder: Path, options: argparse.Namespace) -> str:
    """Two runs that feed the simulator; the weights that every run is to end with."""
    found = Measured()
    alone = run(folder / "alone", options, iter(()))
    found.left_alone(alone)
    chance, attempt = random.Random(len(measured)), 0
    once = alone
    while not once.kills:  # a run may be over before, on a machine that is less busy by now
        attempt += 1
        middle = chance.uniform(0.2, 0.6) * alone.seconds
        once = run(folder / f"once{attempt}", options, iter((middle,)))
    found.killed_once(once)
    measured.append(found)
    if once.weights != alone.weights:
        raise RuntimeError("a run that was killed once does not end with the weights of one alone")
    return alone.weights


def costs_at(place: int, measured: list[Measured], options: argparse.Namespace) -> Costs:
    """Of the time around the measurement `place`: how busy the machine is changes."""
    near = measured[max(place - 1, 0) : place + 3]
    return near[0].together(near[1:]).costs(options.every, options.mean)


def compare(
    trials: list[Seen], costs: list[Costs], options: argparse.Namespace
) -> dict[str, float]:
    """Goodput: the time of the runs' updates, as a share of their time from start to end."""
    chance, updates = random.Random(options.seed), options.updates
    useful = sum(updates * each.update for each in costs)
    seconds = [trial.seconds for trial in trials]
    replayed = sum(
        # with restarts drawn anew each time
        statistics.fmean(simulate(c, updates, chance, iter(t.kills)).seconds for _ in range(20))
        for t, c in zip(trials, costs, strict=True)
    )
    total = sum(seconds)
    error = statistics.stdev(seconds) * math.sqrt(len(seconds)) / total
    found = {
        "trials": len(trials),
        "kills": sum(len(trial.kills) for trial in trials),
        "measured goodput": useful / total,
        "its standard error": useful / total * error,
        "by the formula": useful / sum(expected_seconds(each, updates) for each in costs),
        "simulated, same kills": useful / replayed,
        "without failures": useful
        / sum(expected_seconds(replace(each, mean=math.inf), updates) for each in costs),
    }
    return {name: round(value, 4) for name, value in found.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--updates", type=int, default=300, help="of a run")
    parser.add_argument("--every", type=int, default=30, help="updates between checkpoints")
    parser.add_argument("--mean", type=float, default=5.0, help="seconds between kills")
    parser.add_argument("--calibrate", type=int, default=4, help="trials between measurements")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.updates % options.every:
        parser.error("--updates is a multiple of --every")
    chance = random.Random(options.seed)
    measured: list[Measured] = []
    trials: list[Seen] = []
    places: list[int] = []
    differ, loads = 0, []
    with tempfile.TemporaryDirectory() as temporary:
        run(Path(temporary) / "first", options, iter(()))  # what is loaded late is paid for here
        for number in range(options.trials):
            folder = Path(temporary) / str(number)
            folder.mkdir()
            if number % options.calibrate == 0:
                weights = calibrate(measured, folder, options)
            places.append(len(measured) - 1)
            loads.append(os.getloadavg()[0])
            trials.append(run(folder / "trial", options, failure_times(options.mean, chance)))
            differ += trials[-1].weights != weights
            print(f"trial {number}: {trials[-1].seconds:.1f} s, {len(trials[-1].kills)} kills, "
                  f"load {loads[-1]:.1f}", flush=True)  # fmt: skip
    row = compare(trials, [costs_at(place, measured, options) for place in places], options)
    print("\n" + table([row]))
    off = {
        name: round(row[name] / row["measured goodput"] - 1, 4)
        for name in ("by the formula", "simulated, same kills")
    }
    print(f"off by {off}; {differ} of {len(trials)} runs end with other weights")
    facts = {name: value for name, value in vars(options).items() if name != "seed"}
    costs = measured[0].together(measured[1:]).costs(options.every, options.mean)
    inputs = {name: value for name, value in asdict(costs).items() if name != "mean"}
    if options.trials >= 50:
        results = {
            **facts, "load": [min(loads), statistics.fmean(loads), max(loads)],
            "measured": inputs, **row, "off": off, "differ": differ,
        }  # fmt: skip
        print(save_results("goodput_trials", results))
    return 1 if differ or max(map(abs, off.values())) > 0.1 else 0


if __name__ == "__main__":
    sys.exit(main())
