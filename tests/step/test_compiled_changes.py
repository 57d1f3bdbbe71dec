"""`Step(compile="step")`: what changes between two updates acts, and the compiler's own code."""

from __future__ import annotations

import copy
import shutil
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from test_compiled_step import CRITERION, assert_close, make_batches, make_step, train
from torch import Tensor, nn

import trueloop
from trueloop.step import lowering


@pytest.fixture(autouse=True)
def _interpreted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The same graphs, run operation by operation."""
    monkeypatch.setattr(lowering, "LOWER", lowering.interpreted)
    yield
    torch._dynamo.reset()


class Adjusted(nn.Module):
    """It has a mode, a plain number, and a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 8), nn.Linear(8, 3)
        self.drop = nn.Dropout(0.5)
        self.factor = 1
        self.register_buffer("shift", torch.zeros(8))

    def forward(self, x: Tensor) -> Tensor:
        return self.last(self.drop(torch.tanh(self.first(x)) * self.factor + self.shift))


def slower(step: Any) -> None:
    step.optimizer.param_groups[0]["lr"] = 0.3


def slower_by_a_tensor(step: Any) -> None:
    group = step.optimizer.param_groups[0]
    if isinstance(group["lr"], Tensor):
        group["lr"].mul_(3.0)
    else:
        group["lr"] = torch.tensor(0.1, dtype=torch.float64)


def decayed(step: Any) -> None:
    step.optimizer.param_groups[0].update(betas=(0.5, 0.7), weight_decay=0.3)


def clipped(step: Any) -> None:
    step.clip_norm = 0.01


def frozen(step: Any) -> None:
    step.model.first.weight.requires_grad_(False)


def replaced(step: Any) -> None:
    group, old = step.optimizer.param_groups[0], step.model.first.weight
    step.model.first.weight = nn.Parameter(old.detach() * 2)
    group["params"] = [step.model.first.weight if p is old else p for p in group["params"]]


def with_other_data(step: Any) -> None:
    step.model.first.weight.data = step.model.first.weight.data * 2


def with_a_number(step: Any) -> None:
    step.model.factor = 3


def with_a_buffer(step: Any) -> None:
    step.model.shift = torch.ones(8, dtype=torch.float64)


def with_a_layer(step: Any) -> None:
    step.model.drop = nn.Tanh()


def loaded(step: Any) -> None:
    state = copy.deepcopy(step.optimizer.state_dict())
    for each in state["state"].values():
        each["exp_avg"].mul_(5.0)
    step.optimizer.load_state_dict(state)


CHANGES = (
    slower, slower_by_a_tensor, decayed, clipped, frozen, replaced, with_other_data, with_a_number,
    with_a_buffer, with_a_layer, loaded,
)  # fmt: skip


@pytest.mark.parametrize("change", CHANGES, ids=lambda each: each.__name__)
def test_a_change_between_two_updates_acts(change: Callable[[Any], None]) -> None:
    """Though what was compiled is called without torch.compile."""
    steps = []
    for compile in ("step", None):
        torch.manual_seed(0)
        model = Adjusted().double()
        model.drop.eval()  # the streams of random numbers are not the same
        steps.append(make_step("adam", model, clip_norm=1.0, compile=compile))
    compiled, plain = steps
    batches = make_batches(16)
    for few in (batches[:6], batches[6:10], batches[10:]):
        for step in steps:
            train(step, few)
        for step in steps:
            change(step)
    assert_close(compiled.model.state_dict(), plain.model.state_dict())
    assert compiled._compiled.level == "update"
    (graph,) = compiled._compiled._graphs.values()
    assert graph._traced._direct


def test_a_mode_that_changes_acts() -> None:
    """In train mode the dropout draws; in eval mode it does not."""
    torch.manual_seed(0)
    model = Adjusted().double()
    step = make_step("sgd", model, compile="step")
    batch = make_batches(1)[0]
    drawn = [float(step(batch).loss) for _ in range(6)]
    model.drop.eval()
    found = float(step(batch).loss)
    assert found != drawn[-1]
    with torch.no_grad():
        expected = nn.functional.cross_entropy(model(batch[0]), batch[1])
    assert float(step(batch).loss) == pytest.approx(float(expected), rel=1e-10)
    assert step._compiled.level == "update"


@pytest.mark.skipif(
    not any(map(shutil.which, ("c++", "g++", "clang++"))), reason="there is no C++ compiler"
)
def test_the_code_of_the_compiler(monkeypatch: Any, tmp_path: Any) -> None:
    """One real graph: float32 weights, within the bounds of reordering."""
    monkeypatch.setattr(lowering, "LOWER", lowering.compiled)
    steps = []
    for compile in ("step", None):
        torch.manual_seed(0)
        model = nn.Linear(6, 3)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        steps.append(trueloop.Step(model, optimizer, CRITERION, clip_norm=0.5, compile=compile))
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        for step in steps:
            train(step, make_batches(10, torch.float32))
    compiled, plain = steps
    assert compiled._compiled.level == "update"
    (graph,) = compiled._compiled._graphs.values()
    assert graph._traced._direct
    assert_close(compiled.model.state_dict(), plain.model.state_dict(), 1e-5)
