"""State of the user's own: saved and restored by name, and refused where it would be lost."""

from __future__ import annotations

import copy
from collections import deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

import trueloop
from trueloop.checkpoint import Checkpoints, load_checkpoint, restore
from trueloop.errors import ConfigError, RunError


class Ema:
    """The usual: an average of the weights, which the loss looks at."""

    def __init__(self, model: nn.Module) -> None:
        self.model = copy.deepcopy(model)

    def update(self, model: nn.Module) -> None:
        for mine, its in zip(self.model.parameters(), model.parameters(), strict=True):
            mine.data.lerp_(its.data, 0.1)

    def state_dict(self) -> dict[str, Any]:
        return self.model.state_dict()

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.model.load_state_dict(state)


class Program:
    """A training that depends on more than model, optimizer and data."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Linear(2, 1)
        self.ema = Ema(self.model)
        self.counters = {"seen": 0, "level": torch.zeros(2)}
        self.buffer: deque[Tensor] = deque(maxlen=3)
        self.noise = torch.Generator().manual_seed(5)
        self.scale = torch.ones(1)
        self.log: list[float] = []
        optimizer = torch.optim.Adam(self.model.parameters(), 0.05)
        self.step = trueloop.Step(self.model, optimizer, self.loss, accumulate=2)
        x = torch.rand(20, 2, generator=torch.Generator().manual_seed(1))
        self.feed = trueloop.Feed(x, 2, shuffle=True)

    def state(self) -> dict[str, Any]:
        return {
            "ema": self.ema, "counters": self.counters, "buffer": self.buffer,
            "noise": self.noise, "scale": self.scale, "log": self.log,
        }  # fmt: skip

    def loss(self, model: nn.Module, batch: Tensor) -> Tensor:
        self.counters["seen"] += 1  # type: ignore[operator]
        self.counters["level"] = self.counters["level"] * 0.9 + batch.mean(0)
        noise = torch.rand(1, generator=self.noise)
        wanted = sum(self.buffer, torch.zeros(1)) + self.counters["seen"] / 100 + noise
        self.buffer.append(self.ema.model(batch).mean().detach().reshape(1))
        loss = ((model(batch) - wanted * self.scale) ** 2).mean()
        loss = loss + (model(batch) * self.counters["level"].sum()).mean()
        self.scale.mul_(1.01)
        self.log.append(loss.item())
        self.ema.update(model)
        return loss

    def fit(self, folder: Path, *, stop: int | None = None, resume: bool = False) -> None:
        seen: list[Any] = []

        def sink(record: Any) -> None:
            seen.append(record)
            if len(seen) == stop:
                raise KeyboardInterrupt

        trueloop.fit(
            self.step, self.feed, epochs=3, sinks=[sink],
            checkpoints=Checkpoints(folder, keep_best=None, every="1 update", state=self.state()),
            resume_from=load_checkpoint(folder) if resume else None,
        )  # fmt: skip


@pytest.mark.parametrize("stop", [4, 13, 25])
def test_a_resumed_run_goes_on_with_it(tmp_path: Path, stop: int) -> None:
    whole, before, after = Program(), Program(), Program()
    whole.fit(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        before.fit(tmp_path / "parts", stop=stop)
    named = {name: id(value) for name, value in after.state().items()}
    after.fit(tmp_path / "parts", resume=True)
    assert torch.equal(after.model.weight, whole.model.weight)
    assert torch.equal(after.ema.model.weight, whole.ema.model.weight)
    assert after.counters["seen"] == whole.counters["seen"]
    assert after.log == whole.log
    assert list(after.buffer) == list(whole.buffer)
    assert after.buffer.maxlen == 3
    assert torch.equal(after.scale, whole.scale)
    assert torch.equal(after.noise.get_state(), whole.noise.get_state())
    assert named == {name: id(value) for name, value in after.state().items()}, "in place"


def test_without_it_the_resumed_run_would_be_another(tmp_path: Path) -> None:
    """The test above can fail."""
    whole, before, after = Program(), Program(), Program()
    whole.fit(tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        before.fit(tmp_path / "parts", stop=13)
    state = load_checkpoint(tmp_path / "parts")
    del state["named"]
    trueloop.fit(after.step, after.feed, epochs=3, resume_from=state)
    assert not torch.equal(after.model.weight, whole.model.weight)


def test_a_loop_of_ones_own(tmp_path: Path) -> None:
    whole, before, after = Program(), Program(), Program()
    for program, stop in ((whole, None), (before, 13), (after, None)):
        folder = tmp_path / ("whole" if program is whole else "parts")
        saved = Checkpoints(folder, every="1 update", state=program.state())
        saved.resume(program.step, program.feed)
        count = 0
        for epoch in range(program.step.epoch, 3):
            for batch in program.feed.epoch(epoch, start=program.step.batch):
                program.step(batch)
                saved.keep(program.step, program.feed)
                count += 1
                if count == stop:
                    break
            if count == stop:
                break
            program.step.end_epoch()
        saved.wait()
    assert torch.equal(after.model.weight, whole.model.weight)
    assert after.log == whole.log


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    with pytest.raises(KeyboardInterrupt):
        Program().fit(tmp_path, stop=5)
    return tmp_path


def test_names_that_are_in_one_of_the_two_alone_are_refused(saved: Path) -> None:
    program = Program()
    state = load_checkpoint(saved)
    weight = program.model.weight.detach().clone()
    for named, says in (
        ({}, "contains the state of 'ema', which would be lost"),
        ({**program.state(), "queue": []}, "has no state named 'queue'"),
    ):
        with pytest.raises(RunError, match=says):
            restore(state, program.step, program.feed, named)
    with pytest.raises(RunError, match="which would be lost"):
        trueloop.fit(program.step, program.feed, epochs=3, resume_from=state)
    assert torch.equal(program.model.weight, weight)


def test_what_is_not_taken_up_is_named_and_everything_is_as_it_was(saved: Path) -> None:
    program = Program()
    program.counters["seen"] = 77
    program.ema.model = nn.Linear(3, 1)
    weights = [program.model.weight.clone(), program.ema.model.weight.clone()]
    counters = copy.deepcopy(program.counters)
    state = load_checkpoint(saved)
    # Those before `ema` have been loaded by then, and are put back.
    named = {"counters": program.counters, "scale": program.scale, **program.state()}
    with pytest.raises(RunError, match=r"state\['ema'\] does not accept .*size mismatch") as raised:
        restore(state, program.step, program.feed, named)
    assert "\n" not in str(raised.value)
    assert program.counters["seen"] == counters["seen"]
    assert torch.equal(program.counters["level"], counters["level"])  # type: ignore[arg-type]
    assert torch.equal(program.scale, torch.ones(1))
    assert torch.equal(program.model.weight, weights[0])
    assert torch.equal(program.ema.model.weight, weights[1])
    assert program.step.updates == 0


def test_a_step_that_refuses_leaves_it_as_it_was_too(saved: Path) -> None:
    program, state = Program(), load_checkpoint(saved)
    state["model"]["weight"] = torch.ones(1, 3)
    with pytest.raises(RunError, match="has the shape"):
        restore(state, program.step, program.feed, program.state())
    assert (program.counters["seen"], program.log, len(program.buffer)) == (0, [], 0)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        ({"epoch": 3}, r"state\['epoch'\] is of type int, .*cannot change.*e.g. counters"),
        ({"x": None}, "is of type NoneType"),
        ({"rate": 0.5}, "is of type float"),
        ({"names": ("a",)}, "is of type tuple"),
        ({"rng": np.random.default_rng(0)}, "is of type Generator"),
        ({3: {}}, "has the name 3, which is not text"),
        ([Ema], "has no names"),
        ("ema", "has no names"),
    ],
)
def test_what_cannot_be_restored_is_refused_at_once(state: Any, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=says):
        Checkpoints(tmp_path, state=state)


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ({"a": [np.zeros(2)]}, r"contains a value of type numpy.ndarray at \['a'\]\[0\]"),
        ({"a": {1, 2}}, r"contains a value of type set at \['a'\]"),
        ([object()], r"of type object at \[0\]"),
        ({frozenset([1]): 0}, "of type frozenset at a key of it"),
    ],
)
def test_what_cannot_be_stored_is_said_when_it_is_saved(
    tmp_path: Path, value: Any, says: str
) -> None:
    program = Program()
    saved = Checkpoints(tmp_path, keep_best=None, every="1 update", state={"it": value})
    with pytest.raises(RunError, match=says):
        trueloop.fit(program.step, program.feed, epochs=1, checkpoints=saved)
