"""The way of one sampled update through `trueloop watch`: which files and functions of ours run.

    python tests/one_watched_update.py        # prints them, in order, with the calls of each

The program is a loop written by hand: an MLP, Adam, clipping, a cosine. Looked at is an update that
is sampled again after the first ones, from the end of the update before it to its own end. The step
timer is off, as it is for most updates. A comprehension belongs to the function that it stands in,
as it does for Python from 3.12 on.
"""

from __future__ import annotations

import gc
import sys
from collections import Counter
from types import FrameType
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from one_batch import SOURCE, Function, files
from trueloop.doctor.live.sampling_schedule import FIRST
from trueloop.doctor.live.watcher import Watcher

SAMPLED = 2 * FIRST + 1
"""The update that is traced: the second one of those that are sampled again."""
BETWEEN = SAMPLED + 30
"""One that is not."""
_WITHIN = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


class WatchTrace:
    """Notes each call of a function of ours, and of those that are around the program's."""

    def __init__(self, *, within: bool = False) -> None:
        self.calls: list[Function] = []
        self._within = within

    def __call__(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        # Functions around those of torch have the file of Python's import system in their code.
        file = frame.f_globals.get("__file__") or ""
        counts = self._within or code.co_name not in _WITHIN
        if event == "call" and counts and file.startswith(SOURCE):
            self.calls.append(Function(file.removeprefix(SOURCE), code.co_qualname))


def one_watched_update(at: int = SAMPLED, *, within: bool = False) -> list[Function]:
    """Each call of a function of ours in a watched update, in order; `within`: comprehensions are
    functions of their own."""
    trace = WatchTrace(within=within)
    watcher = Watcher()
    watcher.start()
    watcher.timer.close()
    try:
        torch.manual_seed(0)
        inputs, targets = torch.randn(32, 4), torch.randint(2, (32,))
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
        optimizer = torch.optim.Adam(model.parameters())
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 200)
        for update in range(at + 1):
            if update == at:
                gc.collect()
                gc.disable()
                sys.setprofile(trace)
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(inputs), targets)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    finally:
        sys.setprofile(None)
        gc.enable()
        watcher.stop()
    return trace.calls


def parts(calls: list[Function]) -> tuple[list[Function], list[Function]]:
    """The functions that were called, each once, in order: those that watch, and those of rules."""
    found = list(dict.fromkeys(calls))
    rules = [each for each in found if each.file.startswith("doctor/rules/")]
    return [each for each in found if each not in rules], rules


def main() -> None:
    for title, at in (("between samples", BETWEEN), ("sampled", SAMPLED)):
        for within in (True, False):
            calls = one_watched_update(at, within=within)
            watching, rules = parts(calls)
            print(
                f"{title}: {len(files(watching))} files and {len(watching)} functions,"
                f" {len(rules)} functions of rules, {len(calls)} calls"
                + ("; comprehensions are functions" if within else "")
            )
        for function, count in Counter(calls).items():
            print(f"{count:6}", *function)


if __name__ == "__main__":
    main()
