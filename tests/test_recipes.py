"""The recipes of docs/recipes.md run as they stand, learn, and leave the doctor nothing to find."""

from __future__ import annotations

import functools
import io
import re
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any, NamedTuple

import pytest

from documents import ROOT
from trueloop.cli import main
from warm_python import call

PAGE = ROOT / "docs" / "recipes.md"
RECIPES = dict(
    re.findall(r"^## (.*?)\n.*?^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.M | re.S)
)
Names = dict[str, Any]
"""A program's names, after it."""


def _scores(names: Names) -> dict[str, float]:
    return names["history"].records[-1].scores


def _generates(names: Names) -> bool:
    import torch

    with torch.no_grad():
        made = names["generator"](torch.randn(4000, 4))
    return abs(float(made.mean()) - 3) < 0.3 and 0.1 < float(made.std()) < 1.0


def _learns_both(names: Names) -> bool:
    scores = _scores(names)
    return scores["val_size"] < 0.1 and scores["val_big"] < 0.25


def _has_forces(names: Names) -> bool:
    import torch

    place = torch.tensor([[0.5, -0.5]], requires_grad=True)
    (slope,) = torch.autograd.grad(names["model"](place).sum(), place)
    return torch.allclose(-slope, torch.tensor([[-1.0, 3.0]]), atol=0.5)


def _goes_on(names: Names) -> bool:
    return names["step"].updates == 200 and _scores(names)["train_loss"] < 0.3


CHECKS: dict[str, Callable[[Names], bool]] = {
    "Two losses in turn: a GAN": _generates,
    "One loss of several parts": _learns_both,
    "Input gradients": _has_forces,
    "Distillation": lambda names: names["before"] > 0.95,
    "Fine-tuning": lambda names: names["before"] > 0.9 and names["after"] > 0.85,
    "An average of the weights (EMA)": lambda names: _scores(names)["val_accuracy"] > 0.93,
    "Cross-validation": lambda names: (
        names["result"].mean["val_accuracy"] > 0.85 and len(names["result"].scores) == 5
    ),
    "Sequences of different lengths": lambda names: _scores(names)["val_loss"] < 0.2,
    "Streams": _goes_on,
    "Muon": lambda names: _scores(names)["val_loss"] < 1.0,  # the variance is 4
}


class Ran(NamedTuple):
    does_it: bool
    printed: str
    findings: list[str]


def _run(recipes: dict[str, str]) -> dict[str, Ran]:
    import trueloop

    found = {}
    for title, text in recipes.items():
        names: Names = {"__name__": "__main__"}
        # What takes time hangs on the machine.
        with (
            trueloop.watch(show=False, ignore=["TS1"]) as watched,
            redirect_stdout(io.StringIO()) as out,
        ):
            exec(compile(text, title, "exec"), names)
        findings = [f"{each.code} {each.message}" for each in watched.findings]
        found[title] = Ran(CHECKS[title](names), out.getvalue(), findings + watched.errors)
    return found


@functools.cache
def ran() -> dict[str, Ran]:
    return call(_run, RECIPES)


@pytest.mark.parametrize("title", CHECKS)
def test_a_recipe_runs_and_does_what_it_says(title: str) -> None:
    done = ran()[title]
    assert done.does_it, done.printed
    assert done.printed
    assert done.findings == []


def test_each_recipe_is_run_and_is_short() -> None:
    assert RECIPES.keys() == CHECKS.keys()
    assert all(text.count("\n") < 40 for text in RECIPES.values())


def test_check_finds_nothing_in_the_recipes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--no-cache", str(PAGE)]) == 0, capsys.readouterr().out
