"""A state goes on where it is wanted: on another device, in another dtype, with another torch."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import trueloop
from trueloop.checkpoint import Checkpoints, capture, load_checkpoint, place_of, restore, store
from trueloop.errors import ConfigError, DeviceError, RunError


def _run_state() -> tuple[trueloop.Step, trueloop.Feed]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, 1e-2),
        trueloop.supervised(nn.MSELoss()),
        accumulate=2,
    )
    return step, trueloop.Feed((torch.rand(40, 3), torch.rand(40, 1)), 4)


def _saved_run(folder: Path) -> tuple[trueloop.Step, trueloop.Feed]:
    """Stopped inside a window, so that there are gradients in the state."""
    step, feed = _run_state()
    saved = Checkpoints(folder, asynchronous=False)
    for batch in list(feed.epoch(0))[:5]:
        step(batch)
    saved.save(capture(step, feed), place_of(step))
    return step, feed


def test_another_device(tmp_path: Path) -> None:
    """`meta` stands for any device: weights and gradients go there, and what is not weights
    stays."""
    _saved_run(tmp_path)
    state = load_checkpoint(tmp_path, map_location="meta")
    moved = {**state["model"], **state["step"]["gradients"]}
    assert {t.device.type for t in moved.values()} == {"meta"}
    for slots in state["step"]["optimizer"]["state"].values():
        assert {n: t.device.type for n, t in slots.items()} == {
            "step": "cpu",
            "exp_avg": "meta",
            "exp_avg_sq": "meta",
        }
    assert state["rng"]["torch"].device.type == "cpu"


def test_a_device_that_is_not_there_is_no_damage(tmp_path: Path) -> None:
    _saved_run(tmp_path)
    with pytest.raises(DeviceError, match="unknown device 'gpu'"):
        load_checkpoint(tmp_path, map_location="gpu")
    if not torch.cuda.is_available():
        with pytest.raises(DeviceError, match="device 'cuda' is not there"):
            load_checkpoint(tmp_path, map_location="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs CUDA")
@pytest.mark.parametrize("map_location", ["cpu", "cuda"])
def test_a_run_goes_on_on_the_gpu_and_back(tmp_path: Path, map_location: str) -> None:
    there, _ = _saved_run(tmp_path / "cpu")
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1)).cuda()
    optimizer = trueloop.optimizers.adam(model, 1e-2)
    step = trueloop.Step(model, optimizer, there.loss_fn, accumulate=2)
    feed = trueloop.Feed((torch.rand(40, 3), torch.rand(40, 1)), 4, device="cuda")
    restore(load_checkpoint(tmp_path / "cpu", map_location=map_location), step, feed)
    assert {p.device.type for p in model.parameters()} == {"cuda"}
    for mine, theirs in zip(model.parameters(), there.model.parameters(), strict=True):
        assert torch.equal(mine.cpu(), theirs)
    for batch in feed.epoch(0, start=step.batch):
        step(batch)
    saved = Checkpoints(tmp_path / "gpu")
    saved.save(capture(step, feed), place_of(step))
    saved.wait()
    back, cpu_feed = _run_state()
    restore(load_checkpoint(tmp_path / "gpu", map_location=map_location), back, cpu_feed)
    for mine, theirs in zip(back.model.parameters(), model.parameters(), strict=True):
        assert torch.equal(mine, theirs.cpu())
    assert back.updates == step.updates == 5


def test_another_dtype_is_refused_unless_asked_for(tmp_path: Path) -> None:
    _saved_run(tmp_path)
    step, feed = _run_state()
    step.model.double()
    before = step.model.state_dict()["0.weight"].clone()
    with pytest.raises(
        RunError, match=r"'0.weight' in torch.float32, and the model in torch.float"
    ):
        restore(load_checkpoint(tmp_path), step, feed)
    assert torch.equal(step.model.state_dict()["0.weight"], before)
    state = load_checkpoint(tmp_path, dtype=torch.float64)
    assert state["model"]["1.num_batches_tracked"].dtype == torch.int64
    restore(state, step, feed)
    wide = trueloop.Feed((torch.rand(40, 3).double(), torch.rand(40, 1).double()), 4)
    step(next(iter(wide.epoch(0, start=step.batch))))
    assert step.updates == 3
    with pytest.raises(ConfigError, match="not a floating-point dtype"):
        load_checkpoint(tmp_path, dtype=torch.int8)


def test_another_model_is_said_in_one_line(tmp_path: Path) -> None:
    _saved_run(tmp_path)
    _, feed = _run_state()
    for model in (nn.Linear(3, 2), nn.Sequential(nn.Linear(3, 5), nn.BatchNorm1d(5))):
        step = trueloop.Step(
            model,
            trueloop.optimizers.adam(model, 1e-2),
            trueloop.supervised(nn.MSELoss()),
            accumulate=2,
        )
        with pytest.raises(RunError, match="does not fit this model and optimizer") as e:
            restore(load_checkpoint(tmp_path), step, feed)
        assert "\n" not in str(e.value)


@pytest.mark.parametrize(
    ("written", "noted"),
    [
        ("2.5.1+cu124", True),
        ("1.13.0", True),
        (None, False),
        (["odd"], False),
        (".".join(torch.__version__.split(".")[:2]) + ".99", False),
    ],
    ids=["minor", "major", "none", "odd", "patch"],
)
def test_another_torch_is_noted(tmp_path: Path, written: Any, noted: bool) -> None:
    _saved_run(tmp_path)
    manifest = tmp_path / store.names_in(tmp_path)[0] / "manifest.json"
    facts = json.loads(manifest.read_text())
    assert facts["torch"] == torch.__version__
    assert facts["trueloop"] == trueloop.__version__
    manifest.write_text(json.dumps(facts | {"torch": written}))
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        step, feed = _run_state()
        restore(load_checkpoint(tmp_path), step, feed)
    assert step.updates == 2
    assert len(said) == noted
    if noted:
        text = str(said[0].message)
        assert f"written with torch {written}, and this is torch {torch.__version__}" in text
        assert "\n" not in text
        assert Path(said[0].filename) == Path(__file__)
