"""What making and stepping a schedule leaves behind."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

from trueloop.doctor.model.events import Event, Made, SchedulerStep
from trueloop.doctor.model.things import Scheduler
from trueloop.doctor.static import check_text

HEAD = """
import argparse
import torch
from torch import nn
from torch.optim import lr_scheduler as L
parser = argparse.ArgumentParser()
parser.add_argument("--lr-step", "-s", type=int, default=30)
parser.add_argument("--epochs", type=int)
args = parser.parse_args()
model = nn.Linear(4, 3)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def events(body: str) -> list[Event]:
    found: list[Event] = []
    text = HEAD + textwrap.dedent(body)
    check_text(text, "<text>", rules=[], listen=found.append, strict=True)
    return found


def made(body: str) -> Scheduler:
    """The schedule that is made last."""
    found = [each.thing for each in events(body) if isinstance(each, Made)]
    return [each for each in found if isinstance(each, Scheduler)][-1]


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("L.StepLR(optimizer, 30)", {"step_size": 30, "gamma": 0.1}),
        ("L.StepLR(optimizer, step_size=2 * 5, gamma=0.5)", {"step_size": 10, "gamma": 0.5}),
        ("L.StepLR(optimizer, args.lr_step)", {"option_defaults": {"step_size": 30}}),
        ("L.MultiStepLR(optimizer, [3, 6])", {"milestones": [3, 6], "gamma": 0.1}),
        ("L.MultiStepLR(optimizer, milestones())", {"milestones": None}),
        ("L.OneCycleLR(optimizer, 0.1, epochs=3, steps_per_epoch=4)", {"total_steps": None}),
        ("L.ReduceLROnPlateau(optimizer)", {"mode": "min"}),
        ("L.ReduceLROnPlateau(optimizer, 'max')", {"mode": "max"}),
        ("L.ReduceLROnPlateau(optimizer, **options)", {"mode": None}),
        ("L.LambdaLR(optimizer, lambda e: 0.9**e)", {"decay": 0.9}),
        ("L.CosineAnnealingLR(optimizer, T_max=n)", {"T_max": "n", "written": {"T_max": "n"}}),
    ],
)
def test_arguments(call: str, expected: dict[str, Any]) -> None:
    scheduler = made(call)
    known = vars(scheduler) | scheduler.arguments
    assert {name: known[name] for name in expected} == expected


def test_a_length_is_what_the_loop_turns_by() -> None:
    found = events(
        """
        scheduler = L.CosineAnnealingLR(optimizer, T_max=args.epochs)
        for epoch in range(args.epochs):
            model(torch.randn(1, 4)).sum().backward()
            optimizer.step()
            scheduler.step()
        """
    )
    call = next(each for each in found if isinstance(each, SchedulerStep))
    assert call.scheduler.arguments["T_max"] == call.turns[0].loop.turns
    assert call.metric is None
    assert call.scheduler.name == "scheduler"
    assert call.scheduler.optimizer is not None
    assert call.scheduler.optimizer.name == "optimizer"


def test_schedules_inside_a_schedule() -> None:
    outer = made(
        "L.SequentialLR(optimizer, [L.LinearLR(optimizer), L.ExponentialLR(optimizer, 0.9)], [5])"
    )
    assert [inner.kind for inner in outer.schedules] == ["LinearLR", "ExponentialLR"]
    assert outer.arguments["milestones"] == [5]
    chained = made("L.ChainedScheduler([L.ExponentialLR(optimizer, 0.9)])")
    assert chained.optimizer is not None
    assert [inner.kind for inner in chained.schedules] == ["ExponentialLR"]


def test_metric_and_its_name() -> None:
    found = events("L.ReduceLROnPlateau(optimizer).step(metrics=scores['acc'])")
    (call,) = [each for each in found if isinstance(each, SchedulerStep)]
    assert call.metric is not None
    assert call.metric_name == "scores['acc']"


def test_schedules_of_transformers() -> None:
    one = made("import transformers\ntransformers.get_scheduler('linear', optimizer, 10, 100)")
    assert one.known
    assert one.arguments["name"] == "linear"
    assert (one.arguments["num_warmup_steps"], one.arguments["num_training_steps"]) == (10, 100)
    other = made(
        "from transformers.optimization import get_linear_schedule_with_warmup as g\n"
        "g(optimizer, num_warmup_steps=0, num_training_steps=len(loader) * 3)"
    )
    assert other.arguments["num_training_steps"] == "(3 * len(loader))"


def test_a_schedule_of_the_users_own() -> None:
    found = events(
        """
        class Warmup(L.LRScheduler):
            def __init__(self, optimizer, length):
                self.length = length
                super().__init__(optimizer)

            def step(self, epoch=None):
                super().step(epoch)

        warmup = Warmup(optimizer, 5)
        warmup.step()
        """
    )
    (call,) = [each for each in found if isinstance(each, SchedulerStep)]
    assert call.metric is None
    assert call.scheduler.optimizer is not None
    assert call.scheduler.cls is not None


def test_timm_counts_itself() -> None:
    found = events(
        """
        from timm.scheduler import create_scheduler
        scheduler, epochs = create_scheduler(args, optimizer)
        scheduler.step(3)
        scheduler.step_update(num_updates=7)
        """
    )
    calls = [each for each in found if isinstance(each, SchedulerStep)]
    assert len(calls) == 2
    assert all(call.metric is not None and not call.scheduler.known for call in calls)


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("", 7),
        ("own.steps = 9", 9),
        ("vars(own).update(loaded())", "SimpleNamespace@14.steps"),
        ("own.__dict__.update(loaded())", "SimpleNamespace@14.steps"),
        ("setattr(own, loaded(), 9)", "SimpleNamespace@14.steps"),
        ("parser.parse_args(namespace=own)", "SimpleNamespace@14.steps"),
    ],
)
def test_settings_by_their_names(then: str, expected: object) -> None:
    scheduler = made(
        f"""
        from types import SimpleNamespace
        own = SimpleNamespace(steps=7)
        {then}
        L.StepLR(optimizer, own.steps)
        """
    )
    assert scheduler.arguments["step_size"] == expected


def test_the_fields_of_a_dataclass_are_completed() -> None:
    scheduler = made(
        """
        from dataclasses import dataclass
        @dataclass
        class Run:
            steps: int = 4
            def __post_init__(self):
                self.decay = L.StepLR(optimizer, 2 * self.steps)
        Run(steps=6)
        """
    )
    assert scheduler.arguments["step_size"] == 12


@pytest.mark.parametrize(
    ("setting", "asked", "after", "expected"),
    [
        ("'update'", "own.unit == 'epoch'", "", True),
        ("'epoch'", "own.unit == 'epoch'", "", False),
        ("'none'", "own.unit == 'epoch'", "", False),  # switched off
        ("'update'", "own.unit == 'epoch'", "own.unit = 'epoch'", False),
        ("'update'", "own.unit == 'epoch'", "# decay.step()", False),
        ("2", "own.unit == 3", "", False),  # a count
    ],
)
def test_a_tick_for_another_setting(setting: str, asked: str, after: str, expected: bool) -> None:
    text = HEAD + textwrap.dedent(
        f"""
        from types import SimpleNamespace
        own = SimpleNamespace(unit={setting})
        decay = L.StepLR(optimizer, 2)
        for epoch in range(9):
            optimizer.zero_grad()
            model(torch.randn(8, 4)).mean().backward()
            optimizer.step()
            if {asked}:
                decay.step()
            {after}
        """
    )
    found = [each.code for each in check_text(text, "<text>", strict=True).findings]
    assert ("TL606" in found) is expected
