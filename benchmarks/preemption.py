"""SIGTERM at random moments of a run on two ranks: saved whole, and resumed as if nothing had been.

    python benchmarks/preemption.py [--trials 40] [--seed 0]

Each trial trains a small model with dropout on two ranks (DDP, gloo), with a loader's worker on
each, and sends SIGTERM to rank 0, to rank 1 or to both: in the midst of an update, of an
evaluation, of a checkpoint's writing, of the compilation of the model, of a wait for data, or at
any moment. Both ranks have to end with status 143, the newest checkpoint has to be whole, with no
other file beside, and the run that is resumed from it has to end as the one that was left alone:
weights, optimizer, counters, generators of each rank, scores and best checkpoint bit for bit, and
metrics.jsonl line for line but for its clocks.

Prints a table, writes benchmarks/results/preemption.json, and ends with 1 if a trial fails.
Unix only, since it forks.
"""

from __future__ import annotations

import os

os.environ["OMP_NUM_THREADS"] = "1"  # before torch: a fork must not inherit half a thread pool

import argparse
import faulthandler
import random
import re
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from common import save_results, table
from kill_trials import _CLOCKS, difference, essence, in_fork
from torch import nn
from torch.utils.data import Dataset

import trueloop
from trueloop import Checkpoints, Run, fit, load_checkpoint, ranks, seed, seed_everything
from trueloop.checkpoint import has_checkpoint

KINDS = ("training", "evaluating", "saving", "compiling", "waiting for data", "any moment")
WHOM = ((0,), (1,), (0, 1))
RANKS, EPOCHS, SAMPLES, BATCH = 2, 4, 90, 8
_LIMIT = 60.0
_SLOW = 20.0
"""After so many seconds all processes of a rank write where they are."""
_FOLDER = re.compile(r"e\d{5}-b\d{5}-u\d{9}")


@dataclass(frozen=True)
class Aim:
    """When and to whom the signal is sent."""

    kind: str
    whom: tuple[int, ...]
    seconds: float
    """After `fit` has begun; for a named phase, at the first moment of it from then on."""


class Samples(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Samples that take a moment each, the more on one rank."""

    def __init__(self, count: int, pause: float) -> None:
        self.count, self.pause = count, pause

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        time.sleep(self.pause)
        inputs = torch.randn(6)  # drawn for this sample and epoch alone
        return inputs, inputs.sum().reshape(1) + index / 100


class Small(nn.Module):
    """A class of its own: torch does not compile a bare `nn.Sequential` in place."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.Dropout(0.2), nn.Linear(16, 1))

    def forward(self, inputs: torch.Tensor) -> torch.Tensor:
        outputs: torch.Tensor = self.layers(inputs)
        return outputs


class Compiling:
    """A compiler that takes its time, and leaves the graph as it is."""

    def __init__(self) -> None:
        self.runs = threading.Event()

    def __call__(self, module: Any, inputs: Any) -> Any:
        self.runs.set()
        time.sleep(0.5)
        self.runs.clear()
        return module.forward


def train(folder: Path, compiled: bool, aim: Aim | None) -> None:
    """Begin the run in `folder`, or go on with it; at its end, leave `outcome.pt` there."""
    with ranks.joined(torch.device("cpu")):
        history, setup = _train(folder, compiled, aim)
        if history.signal is None:
            _leave_outcome(folder, history, setup)
    if history.signal is not None:
        sys.exit(128 + history.signal)


def _train(folder: Path, compiled: bool, aim: Aim | None) -> tuple[Any, Any]:
    path = folder / "run"
    found = ranks.on_main(lambda: has_checkpoint(path / "checkpoints"), "the state of the run")
    seed_everything(7 if found else 0)  # what the checkpoint does not bring back will differ
    run = Run(path) if found else Run.create(path, config={})
    state = load_checkpoint(run.checkpoints) if found else None
    model = Small()
    compiler = Compiling()
    if compiled:
        model.compile(backend=compiler)
    step = trueloop.Step(
        model,
        trueloop.optimizers.adamw(model, lr=0.01),
        trueloop.supervised(nn.MSELoss()),
        accumulate=2,
        parallel="ddp",
    )
    seed.seed_rank(7 if found else 0, ranks.rank())
    if aim is not None and ranks.rank() in aim.whom:
        threading.Thread(target=_send, args=(aim, compiler, folder), daemon=True).start()
    history = fit(
        step,
        trueloop.Feed(Samples(SAMPLES, 0.007), BATCH, shuffle=True, workers=1),
        trueloop.Feed(Samples(40, 0.002), BATCH),
        epochs=EPOCHS,
        run=run,
        checkpoints=Checkpoints(run.checkpoints, every="5 updates"),
        resume_from=state,
        progress=False,
        grace_seconds=_LIMIT,  # on a machine that is busy too
    )
    return history, (step, run)


def _send(aim: Aim, compiler: Compiling, folder: Path) -> None:
    """Send this process the signal as it was aimed, and leave a note of what it was doing."""
    while signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:  # `fit` has not begun
        time.sleep(0.001)
    time.sleep(aim.seconds)
    if aim.kind == "compiling":
        compiler.runs.wait(_LIMIT)
    elif aim.kind != "any moment":
        while ranks.here.phase != aim.kind:
            time.sleep(0.0002)
    phase = "compiling" if compiler.runs.is_set() else ranks.here.phase
    os.kill(os.getpid(), signal.SIGTERM)
    (folder / f"sent-{ranks.rank()}").write_text(phase, "utf-8")


def _leave_outcome(folder: Path, history: Any, setup: tuple[Any, Run]) -> None:
    step, run = setup
    outcome = {
        **step.state_dict(),
        "generators": ranks.gathered(seed.rng_state()),
        "best checkpoint": essence(load_checkpoint(run.checkpoints, "best")),
        "history": [history.status, history.best, history.best_epoch, history.updates],
        "scores": [record.scores for record in history.records],
    }
    if ranks.is_main():
        torch.save(outcome, folder / "outcome.pt")


def run_ranks(folder: Path, compiled: bool, aim: Aim | None) -> list[int]:
    """The exit statuses of all ranks of one start; -9 for one that had to be killed."""
    # The store's thread begins after the forks: a lock that it held then, nobody would release in
    # the child. Until it begins, who connects waits in the socket's queue.
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    children = []
    for rank in range(RANKS):
        words = {
            "RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": RANKS, "LOCAL_WORLD_SIZE": RANKS,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            "TORCHELASTIC_USE_AGENT_STORE": True,
        }  # fmt: skip
        work = partial(
            _as_rank, {name: str(word) for name, word in words.items()}, folder, compiled, aim
        )
        children.append(in_fork(work, folder / f"errors-{rank}.txt"))
    store = dist.TCPStore(
        "127.0.0.1", port, is_master=True, timeout=timedelta(seconds=_LIMIT),
        master_listen_fd=listener.detach(),
    )  # fmt: skip
    statuses = [_status(child) for child in children]
    del store
    return statuses


def _as_rank(words: dict[str, str], folder: Path, compiled: bool, aim: Aim | None) -> None:
    os.environ.update(words)
    faulthandler.register(signal.SIGUSR2, file=2)  # in its workers too: they are forked
    try:
        train(folder, compiled, aim)
    except SystemExit as stop:
        os._exit(int(stop.code or 0))


def _status(child: int) -> int:
    began, is_slow = time.monotonic(), False
    while (seconds := time.monotonic() - began) < _LIMIT:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        if seconds > _SLOW and not is_slow:
            is_slow = True
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGUSR2)
        time.sleep(0.005)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -signal.SIGKILL


def whole(folder: Path) -> dict[str, Any]:
    """All that a run has to end with."""
    log = (folder / "run" / "metrics.jsonl").read_bytes()
    outcome = torch.load(folder / "outcome.pt", weights_only=False)
    return {**outcome, "log": _CLOCKS.sub(b"", log).splitlines()}


def errors(folder: Path) -> str:
    texts = [path.read_text("utf-8") for path in sorted(folder.glob("errors-*.txt"))]
    return " | ".join(text.strip()[-8000:] for text in texts if text.strip())


def trial(folder: Path, wanted: dict[str, Any], aim: Aim) -> tuple[str, str | None]:
    """What the signal met, and what is wrong with the run that it ended; None if nothing is."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    compiled = aim.kind == "compiling"
    statuses = run_ranks(folder, compiled, aim)
    met = " and ".join(sorted({path.read_text("utf-8") for path in folder.glob("sent-*")}))
    if statuses != [128 + signal.SIGTERM] * RANKS:
        return met, f"statuses {statuses}: {errors(folder)}"
    names = [path.name for path in (folder / "run" / "checkpoints").iterdir() if path.is_dir()]
    if odd := [name for name in names if not _FOLDER.fullmatch(name)]:
        return met, f"left over: {odd}"
    if not names:
        return met, "no checkpoint"
    load_checkpoint(folder / "run" / "checkpoints")  # verifies every hash
    statuses = run_ranks(folder, compiled, None)
    if statuses != [0] * RANKS:
        return met, f"the resume ended with {statuses}: {errors(folder)}"
    return met, difference(wanted, whole(folder))


def plan(trials: int, chance: random.Random) -> list[Aim]:
    """Each kind as often as the others, to each rank and to both."""
    aims = []
    for number in range(trials):
        kind = KINDS[number % len(KINDS)]
        whom = WHOM[(number // len(KINDS) + number) % len(WHOM)]
        latest = 0.2 if kind == "compiling" else 0.6
        aims.append(Aim(kind, whom, chance.uniform(0.0, latest)))
    return aims


def measured(trials: int, number: int, folder: Path) -> list[dict[str, Any]]:
    """A row for each kind of moment."""
    wanted = {}
    for compiled in (False, True):
        place = folder / f"reference-{compiled}"
        place.mkdir()
        if (statuses := run_ranks(place, compiled, None)) != [0] * RANKS:
            raise RuntimeError(f"the run left alone ended with {statuses}: {errors(place)}")
        wanted[compiled] = whole(place)
    rows = {kind: {"sent in": kind, "trials": 0, "whole and exact": 0} for kind in KINDS}
    for aim in plan(trials, random.Random(number)):
        met, problem = trial(folder / "trial", wanted[aim.kind == "compiling"], aim)
        rows[aim.kind]["trials"] += 1  # type: ignore[operator]
        rows[aim.kind]["whole and exact"] += problem is None  # type: ignore[operator]
        if problem:
            print(f"{aim}, met {met or 'nothing'}: {problem}", flush=True)
    return [row for row in rows.values() if row["trials"]]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--no-results", action="store_true", help="write no file of results")
    given = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        rows = measured(given.trials, given.seed, Path(folder))
    print(table(rows))
    exact = sum(row["whole and exact"] for row in rows)
    print(f"{exact} of {given.trials} whole and resumed exactly")
    if not given.no_results:
        seconds = round(time.monotonic() - began)
        save_results("preemption", {"ranks": RANKS, "rows": rows, "seconds": seconds})
    return 0 if exact == given.trials else 1


if __name__ == "__main__":
    sys.exit(main())
