"""Losses and gradients that are not finite: what is said of them, what is kept, what is touched."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from trueloop.cli.replay import main as replay
from trueloop.doctor.live.replay import bundle
from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.findings import Finding
from trueloop.errors import ConfigError


def found(watcher: Watcher) -> list[Finding]:
    watcher.stop()
    return [each for each in watcher.findings() if each.code == "TH101"]


class Share(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x / x.sum(dim=1, keepdim=True)


class Noisy(nn.Module):
    """Draws, counts its calls, keeps what it gave, and changes its buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.BatchNorm1d(4)
        self.drop = nn.Dropout(0.5)
        self.out = nn.Linear(4, 2)
        self.calls = 0
        self.kept: list[Tensor] = []

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        hidden = self.drop(self.norm(x))
        self.kept = [hidden]
        return self.out(hidden)


def train(model: nn.Module, batches: list[Tensor], lr: float = 0.1) -> None:
    optimizer = torch.optim.SGD(model.parameters(), lr=lr)
    for x in batches:
        loss = model(x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def batches(count: int, width: int = 4) -> list[Tensor]:
    return [torch.rand(8, width) + 0.1 for _ in range(count)]


@pytest.mark.parametrize("late", [2, 150], ids=["while looked at", "while nobody looks"])
def test_the_module_the_operation_and_the_row_are_named(watcher: Watcher, late: int) -> None:
    given = batches(late + 2)
    given[late][5] = 0
    train(nn.Sequential(Share(), nn.Linear(4, 1)), given)
    (finding,) = found(watcher)
    assert f"in update {late + 1}: `aten.div.Tensor` in `0` (Share)" in finding.message
    assert "0 is divided by 0" in finding.message
    assert "row 5 of the batch" in finding.message
    assert finding.severity == "error"
    assert Path(finding.place.path) == Path(__file__)


@pytest.mark.parametrize("late", [2, 150], ids=["while looked at", "while nobody looks"])
def test_a_gradient_that_is_not_finite_under_a_loss_that_is(watcher: Watcher, late: int) -> None:
    class Root(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x - x[:1] * x.new_ones(1)).square().sum(dim=1)[1:].sqrt()

    given = batches(late + 2)
    given[late][3] = given[late][0]
    train(nn.Sequential(nn.Linear(4, 3), Root()), given)
    (finding,) = found(watcher)
    assert "although the loss is finite: it begins in `SqrtBackward0` in `1`" in finding.message


def test_a_parameter_that_is_made_and_never_filled(watcher: Watcher) -> None:
    model = nn.Linear(4, 1)
    with torch.no_grad():
        model.bias.fill_(float("nan"))
    train(model, batches(2))
    (finding,) = found(watcher)
    assert "the parameter `bias` contains NaN, before the first update" in finding.message


def test_exploding_weights(watcher: Watcher) -> None:
    train(nn.Linear(4, 1), batches(200), lr=40.0)
    (finding,) = found(watcher)
    assert "training has diverged" in finding.message
    assert "the learning rate is 40" in finding.message


def test_a_loss_written_in_the_open(watcher: Watcher) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        loss = torch.log(0 * model(torch.rand(8, 4)).square()).mean()
        loss.backward()
        optimizer.step()
    (finding,) = found(watcher)
    assert "`aten.log` in the loss, outside of the model" in finding.message
    assert "its input contains 0" in finding.message


def test_a_batch_that_is_left_out_is_advice(watcher: Watcher, tmp_path: Path) -> None:
    model = nn.Sequential(Share(), nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step, x in enumerate(batches(6)):
        loss = model(x * 0 if step == 3 else x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        if torch.isfinite(loss):
            optimizer.step()
    assert [each.severity for each in found(watcher)] == ["advice"]
    assert list(tmp_path.iterdir()) == []


def test_an_infinite_loss_with_finite_gradients_is_silent(watcher: Watcher) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in batches(4):
        optimizer.zero_grad()
        (model(x).mean() + float("inf")).backward()
        optimizer.step()
    assert found(watcher) == []


def test_overflow_that_a_scaler_skips_is_silent(watcher: Watcher) -> None:
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0**127)
    for x in batches(6):
        optimizer.zero_grad()
        loss = F.mse_loss(model(x), 100 * torch.ones(8, 1))
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
    assert found(watcher) == []


def final(state: dict[str, Any]) -> dict[str, bytes]:
    return {name: each.numpy().tobytes() for name, each in state.items()}


def noisy_run() -> tuple[Any, ...]:
    torch.manual_seed(3)
    random.seed(3)
    numpy.random.seed(3)
    model = Noisy()
    given = batches(3)
    given[1][2] = float("inf")
    train(model, given)
    drawn = (torch.rand(3).tolist(), random.random(), float(numpy.random.rand()))
    return final(model.state_dict()), model.calls, drawn


def test_nothing_of_the_program_is_touched(tmp_path: Path) -> None:
    alone = noisy_run()
    watcher = Watcher()
    watcher.nonfinite.bundles = str(tmp_path)
    watcher.start()
    watched = noisy_run()
    assert [each.code for each in found(watcher)] == ["TH101"]
    assert watcher.hub.errors == []
    assert repr(watched) == repr(alone)


def test_a_bundle_is_replayed(
    watcher: Watcher, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = batches(4)
    given[2][1] = 0
    train(nn.Sequential(Share(), nn.Dropout(0.3), nn.Linear(4, 1)), given)
    (finding,) = found(watcher)
    (folder,) = tmp_path.iterdir()
    assert f"trueloop replay {folder}" in finding.message
    assert replay([str(folder)]) == 0
    told = capsys.readouterr().out
    assert "first: aten.div.Tensor in 0 (Share) returns NaN" in told
    assert ": reproduced" in told


def test_a_bundle_that_comes_out_differently_says_so(watcher: Watcher, tmp_path: Path) -> None:
    given = batches(3)
    given[1][1] = 0
    train(nn.Sequential(Share(), nn.Linear(4, 1)), given)
    assert found(watcher)
    (folder,) = tmp_path.iterdir()
    tape = json.loads((folder / "tape.json").read_text("utf-8"))
    for operation in tape["operations"]:
        operation["bad"] = ""
    (folder / "tape.json").write_text(json.dumps(tape))
    assert replay([str(folder)]) == 1


def test_operations_that_are_not_torchs_own_are_refused(watcher: Watcher, tmp_path: Path) -> None:
    given = batches(3)
    given[1][1] = 0
    train(nn.Sequential(Share(), nn.Linear(4, 1)), given)
    assert found(watcher)
    (folder,) = tmp_path.iterdir()
    whole = json.loads((folder / "tape.json").read_text("utf-8"))
    for name in ("os.system", "aten.from_file.default", "aten.no_such.default"):
        whole["operations"][0]["name"] = name
        (folder / "tape.json").write_text(json.dumps(whole))
        with pytest.raises(ConfigError, match=r"cannot be replayed|replay it with"):
            bundle.replay(str(folder))


def test_what_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a bundle"):
        bundle.replay(str(tmp_path))


def test_nothing_is_held_of_a_batch_that_is_done_with(watcher: Watcher) -> None:
    train(nn.Linear(4, 1), batches(120))
    assert watcher.nonfinite.calls.held == []
    assert found(watcher) == []
