"""Schedules in programs that run: what they were made with, the loops that they step in."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.optim import lr_scheduler

from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.events import Event, LoopEntered, Made, SchedulerStep
from trueloop.doctor.model.things import Loop, Scheduler
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.loading import load


def run(text: str, folder: Path, *codes: str) -> tuple[Watcher, list[Event]]:
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    watcher = Watcher([load(BY_CODE[code]) for code in codes])
    events: list[Event] = []
    watcher.recorder.listeners.append(events.append)
    watcher.start()
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        watcher.stop()
    assert watcher.hub.errors == []
    return watcher, events


SETUP = """
import torch
from torch.optim import lr_scheduler as L
weight = torch.nn.Parameter(torch.ones(2))
optimizer = torch.optim.SGD([weight], lr=0.1)
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("L.CosineAnnealingLR(optimizer, 3 + 4)", {"T_max": 7, "eta_min": 0.0}),
        ("L.StepLR(optimizer, step_size=5)", {"step_size": 5, "gamma": 0.1}),
        ("L.MultiStepLR(optimizer, [2, 4])", {"milestones": [2, 4], "gamma": 0.1}),
        (
            "L.OneCycleLR(optimizer, 0.1, epochs=2, steps_per_epoch=3)",
            {"total_steps": None, "epochs": 2, "steps_per_epoch": 3},
        ),
        ("L.LambdaLR(optimizer, lambda epoch: 0.95**epoch)", {"decay": 0.95}),
        ("L.ReduceLROnPlateau(optimizer, 'max')", {"mode": "max", "factor": 0.1}),
        ("L.LinearLR(optimizer)", {"start_factor": 1 / 3, "total_iters": 5}),
    ],
    ids=["cosine", "step", "milestones", "one-cycle", "lambda", "plateau", "defaults"],
)
def test_arguments(made: str, expected: dict[str, Any], tmp_path: Path) -> None:
    _, events = run(f"{SETUP}scheduler = {made}\n", tmp_path)
    things = [each.thing for each in events if isinstance(each, Made)]
    (scheduler,) = (each for each in things if isinstance(each, Scheduler))
    known = vars(scheduler) | scheduler.arguments
    assert {name: known[name] for name in expected} == expected
    assert scheduler.name == "scheduler"


def test_arguments_are_written_as_in_the_source(tmp_path: Path) -> None:
    text = f"{SETUP}epochs = 3\nscheduler = L.CosineAnnealingLR(optimizer, T_max=epochs * 2)\n"
    _, events = run(text, tmp_path)
    scheduler = next(
        each.thing
        for each in events
        if isinstance(each, Made) and isinstance(each.thing, Scheduler)
    )
    assert scheduler.written["T_max"] == "epochs * 2"


def loops(events: list[Event]) -> list[Loop]:
    """Those of the program, not of the test around it."""
    found = (each.loop for each in events if isinstance(each, LoopEntered))
    return [loop for loop in found if loop.place.path.endswith("program.py")]


@pytest.mark.parametrize(
    ("header", "turns"),
    [
        ("range(4)", 4),
        ("range(start, epochs)", 3),
        ("range(args.epochs)", 6),
        ("range(config['epochs'] // 2)", 4),
        ("range(epochs + 1)", 6),
        ("enumerate([1, 2, 3])", 3),
        ("range(args.computed)", None),
        ("range(len(own))", None),
    ],
    ids=["number", "start", "attribute", "entry", "sum", "list", "property", "own-length"],
)
def test_turns_are_read_off_the_frame(header: str, turns: int | None, tmp_path: Path) -> None:
    text = f"""{SETUP}
class Args:
    epochs = 6
    calls = 0

    @property
    def computed(self):
        self.calls += 1
        return 2

    def __len__(self):
        self.calls += 1
        return 2


def fit(args, own, config, start=2, epochs=5):
    before = args.calls, own.calls
    for turn in {header}:
        if turn != 1:
            (weight.sum() * 2).backward()
            optimizer.step()
            optimizer.zero_grad()
    return args.calls - before[0], own.calls - before[1]


calls = fit(Args(), Args(), {{"epochs": 8}})
assert calls == (int("computed" in {header!r}), int("own" in {header!r}))
"""
    _, events = run(text, tmp_path)
    assert [loop.turns for loop in loops(events)] == [turns]


def test_a_look_into_a_function_leaves_no_trace(tmp_path: Path) -> None:
    text = f"""{SETUP}
import gc, weakref

def fit():
    large = torch.zeros(3)
    gone = weakref.ref(large)
    for epoch in range(2):
        large = None
        weight.sum().backward()
        optimizer.step()
    assert gone() is None

def asks():
    seen = locals()
    for epoch in range(2):
        weight.sum().backward()
        optimizer.step()
    return seen

fit()
{"assert asks() == {}" if sys.version_info < (3, 13) else ""}
"""
    run(text, tmp_path)


def test_each_epoch_is_a_turn_of_the_loop_around_the_batches(tmp_path: Path) -> None:
    text = f"""{SETUP}
loader = torch.utils.data.DataLoader(torch.randn(6, 2), batch_size=2)
scheduler = L.StepLR(optimizer, 5)
for epoch in range(3):
    for x in loader:
        (x * weight).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    scheduler.step()
"""
    _, events = run(text, tmp_path)
    calls = [each for each in events if isinstance(each, SchedulerStep)]
    epochs = loops(events)[0]
    turns = [turn for call in calls for turn in call.turns if turn.loop is epochs]
    assert [turn.index for turn in turns] == [0, 1, 2]
    assert [loop.kind for loop in loops(events)] == ["epochs", *["batches"] * 3]


def test_ticks_long_after_the_last_look_are_seen(tmp_path: Path) -> None:
    text = f"""{SETUP}
loader = torch.utils.data.DataLoader(torch.randn(200, 2), batch_size=1)
scheduler = L.StepLR(optimizer, 5)
for epoch in range(2):
    for x in loader:
        (x * weight).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    scheduler.step()
"""
    watcher, events = run(text, tmp_path, "TL606")
    assert sum(isinstance(each, SchedulerStep) for each in events) == 2
    assert watcher.findings() == []


def test_a_run_cut_short_is_no_proof_that_nothing_ticks(tmp_path: Path) -> None:
    text = f"""{SETUP}
scheduler = L.StepLR(optimizer, 5)
for epoch in range(4):
    for step in range(5):
        weight.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
    watcher, _ = run(text, tmp_path, "TL606")
    watcher.hub.cut = True
    assert watcher.findings() == []
    watcher, _ = run(text, tmp_path, "TL606")
    assert [each.code for each in watcher.findings()] == ["TL606"]


def test_what_is_put_into_schedules_is_taken_out_again() -> None:
    before = vars(lr_scheduler.StepLR)["__init__"], vars(lr_scheduler.LRScheduler)["step"]
    watcher = Watcher([])
    watcher.start()
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    assert lr_scheduler.StepLR(optimizer, 2).step_size == 2
    watcher.stop()
    assert (vars(lr_scheduler.StepLR)["__init__"], vars(lr_scheduler.LRScheduler)["step"]) == before


def test_a_functions_variable_that_is_not_bound_yet(tmp_path: Path) -> None:
    program = SETUP + (
        "def main(start):\n"
        "    def rate(epoch):\n"
        "        return 1.0 if epoch < 100 else 1 / (start + later)\n"
        "    schedule = L.LambdaLR(optimizer, rate)\n"
        "    for _ in range(3):\n"
        "        optimizer.step()\n"
        "        schedule.step()\n"
        "    later = 3\n"
        "    return later\n"
        "main(5)\n"
    )
    _, events = run(program, tmp_path, "TL801")
    (schedule,) = {each.scheduler for each in events if isinstance(each, SchedulerStep)}
    assert schedule.read_counts == {5}
