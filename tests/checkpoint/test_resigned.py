"""Checkpoints whose hashes fit and whose content does not: named, and the one before is taken."""

from __future__ import annotations

import copy
import json
import shutil
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from torch import nn

import trueloop
from bits import same
from resigned import changes, examples, resign
from trueloop.checkpoint import Checkpoints, load_checkpoint, restore, store
from trueloop.errors import RunError, ScheduleError, TrueloopError
from trueloop.seed import rng_state
from trueloop.stopping import EarlyStopping


def make(epochs: int = 4) -> tuple[trueloop.Step, trueloop.Feed]:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Linear(4, 1))
    step = trueloop.Step(
        model,
        trueloop.optimizers.adam(model, 1e-2),
        trueloop.supervised(nn.MSELoss()),
        schedule=trueloop.schedules.warmup_cosine(),
        accumulate=2,
    )
    x, y = (torch.rand(22, n, generator=torch.Generator().manual_seed(n)) for n in (3, 1))
    feed = trueloop.Feed((x, y), 4, shuffle=True)
    step.plan(epochs=epochs, batches=len(feed))
    return step, feed


def train(folder: Path, *, stop: int | None = None, resume_from: Any = None) -> None:
    """Train, or train on; `stop` after so many batches, as by a kill."""
    step, feed = make()
    seen: list[Any] = []

    def sink(record: Any) -> None:
        seen.append(record)
        if len(seen) == stop:
            saved.save({**saved_state(), **extra()}, (step.epoch, step.batch, step.updates))
            raise KeyboardInterrupt

    from trueloop.checkpoint import capture

    def saved_state() -> dict[str, Any]:
        return capture(step, feed)

    def extra() -> dict[str, Any]:
        last = load_checkpoint(folder)
        return {name: last[name] for name in last if name not in saved_state()}

    saved = Checkpoints(folder, asynchronous=False, every="1 epoch")
    trueloop.fit(
        step, feed, feed, epochs=4, checkpoints=saved, sinks=[sink],
        early_stop=EarlyStopping(patience=3), resume_from=resume_from,
    )  # fmt: skip


@pytest.fixture(scope="module")
def stopped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run stopped inside a window of its third epoch."""
    folder = tmp_path_factory.mktemp("stopped")
    with pytest.raises(KeyboardInterrupt):
        train(folder, stop=15)
    state = load_checkpoint(folder)
    assert state["step"]["window"]["micro_batches"] == 1
    assert state["step"]["gradients"]
    return folder


def everything(step: trueloop.Step, feed: trueloop.Feed) -> Any:
    return copy.deepcopy((step.state_dict(), feed.state_dict(), rng_state()))


def refused(work: Callable[[], object]) -> str:
    """What an error of ours says; empty where there is none."""
    try:
        work()
    except TrueloopError as error:
        return str(error)
    return ""


def go_on_or_refuse(folder: Path) -> None:
    """Load, restore and train on; or say why not, in one line, and leave everything as it was."""
    step, feed = make()
    before = everything(step, feed)
    why = refused(lambda: restore(load_checkpoint(folder), step, feed))
    if why:
        assert same(before, everything(step, feed))
    else:
        why = refused(lambda: train(folder, resume_from=load_checkpoint(folder)))
    assert "\n" not in why


@settings(max_examples=examples(40), deadline=None, suppress_health_check=list(HealthCheck))
@given(made=changes())
def test_whatever_is_changed_it_goes_on_or_says_why(
    stopped: Path, tmp_path_factory: pytest.TempPathFactory, made: Any
) -> None:
    folder = tmp_path_factory.mktemp("changed")
    name = store.names_in(stopped)[-1]
    shutil.copytree(stopped / name, folder / name)
    resign(folder / name, load_checkpoint(folder), made)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        go_on_or_refuse(folder)
    shutil.rmtree(folder)


MISSING = [
    ("model",), ("step",), ("feed",), ("rng",), ("step", "optimizer"), ("step", "window"),
    ("step", "counters"), ("step", "options"), ("step", "schedule"), ("step", "gradients"),
    ("step", "precision"), ("step", "window", "samples"), ("step", "optimizer", "state"),
    ("feed", "epoch"), ("feed", "seed"), ("rng", "torch"), ("rng", "numpy"), ("rng", "random"),
    ("early_stop",), ("early_stop", "stale"), ("seconds",), ("best",), ("records",),
]  # fmt: skip


def dotted(path: tuple[str, ...]) -> str:
    return ".".join(path)


@pytest.mark.parametrize("path", MISSING, ids=dotted)
@pytest.mark.parametrize("value", ["gone", "x", 1.5])
def test_a_part_that_is_missing_or_mistyped_is_named_and_the_one_before_taken(
    stopped: Path, tmp_path: Path, path: tuple[str, ...], value: Any
) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    *older, newest = store.names_in(tmp_path)
    state = load_checkpoint(tmp_path)
    holder = state
    for key in path[:-1]:
        holder = holder[key]
    if path == ("seconds",) and value == 1.5:
        value = None
    if value == "gone":
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    resign(tmp_path / newest, state, [])
    problem = rf"{newest}: {dotted(path)} is (missing|a )"
    if path == ("seconds",) and value is None:
        problem = rf"{newest}: seconds is None, not a finite number"
    with pytest.warns(RuntimeWarning, match=rf"{problem}.*going back to {older[-1]}"):
        found = load_checkpoint(tmp_path)
    assert found["step"]["counters"][0] == 2
    for name in older:
        shutil.rmtree(tmp_path / name)
    with pytest.raises(RunError, match=problem) as raised:
        load_checkpoint(tmp_path)
    assert str(raised.value).endswith("use a different checkpoint")


@pytest.mark.parametrize("state", [{}, [], None, "x", {"model": {}}])
def test_no_state_at_all(stopped: Path, tmp_path: Path, state: Any) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    *_, older, newest = store.names_in(tmp_path)
    resign(tmp_path / newest, state, [])
    with pytest.warns(RuntimeWarning, match=f"{newest}.*going back to {older}"):
        load_checkpoint(tmp_path)
    if isinstance(state, dict):
        step, feed = make()
        with pytest.raises(RunError, match="not a state to resume from"):
            restore(state, step, feed)


def test_a_checkpoint_of_a_newer_version_is_not_damaged(stopped: Path, tmp_path: Path) -> None:
    """An older one is not gone back to: going on from that would remove what is good."""
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    newest = tmp_path / store.names_in(tmp_path)[-1]
    facts = json.loads((newest / "manifest.json").read_text())
    (newest / "manifest.json").write_text(json.dumps(facts | {"format": store.FORMAT + 1}))
    with pytest.raises(RunError, match="written by a newer trueloop: update trueloop"):
        load_checkpoint(tmp_path)
    (newest / "manifest.json").write_text(json.dumps(facts | {"format": 1}))
    assert load_checkpoint(tmp_path)["step"]["counters"][0] == 2
    for wrong in (0, -1, "2", None, True, [2]):
        (newest / "manifest.json").write_text(json.dumps(facts | {"format": wrong}))
        with pytest.warns(RuntimeWarning, match="is damaged"):
            load_checkpoint(tmp_path)


def test_sparse_indices_that_lead_out_of_their_tensor(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    newest, state = tmp_path / store.names_in(tmp_path)[-1], load_checkpoint(tmp_path)
    beyond = torch.sparse_coo_tensor(
        torch.tensor([[10**6], [0]]), torch.ones(1), (4, 3), check_invariants=False
    )
    state["step"]["gradients"]["0.weight"] = beyond
    resign(newest, state, [])
    with pytest.warns(RuntimeWarning, match="cannot be read"):
        load_checkpoint(tmp_path)


def test_a_state_that_holds_itself(stopped: Path, tmp_path: Path) -> None:
    shutil.copytree(stopped, tmp_path, dirs_exist_ok=True)
    newest, state = tmp_path / store.names_in(tmp_path)[-1], load_checkpoint(tmp_path)
    endless: list[Any] = []
    endless += [endless, endless, None]
    state["named"] = {"ema": endless}
    facts = store.manifest(newest)
    store.write(newest, state, {name: facts[name] for name in ("epoch", "batch", "update")})
    with pytest.warns(RuntimeWarning, match="is nested too deep"):
        load_checkpoint(tmp_path)


REFUSED = {
    "a longer run": (lambda state: None, 5, ScheduleError, "schedule is 12 updates long"),
    "a name too many": (
        lambda s: s["model"].update(more=torch.ones(1)), 4, RunError, "has 'more', which the model",
    ),
    "a shape": (
        lambda s: s["model"].update({"0.bias": torch.ones(5)}), 4, RunError, "'0.bias' has the",
    ),
    "a dtype": (
        lambda s: s["model"].update({"3.bias": torch.ones(1).double()}), 4, RunError, "float64",
    ),
    "a moment's shape": (
        lambda s: s["step"]["optimizer"]["state"][0].update(exp_avg=torch.ones(3)), 4,
        RunError, r"exp_avg has the shape \(3,\)",
    ),
    "an option that Adam refuses": (
        lambda s: s["step"]["optimizer"]["param_groups"][0].update(betas=(2.0, 0.9)), 4,
        RunError, "Invalid beta parameter at index 0: 2.0",
    ),
    "a group": (
        lambda s: s["step"]["optimizer"]["param_groups"].pop(), 4, RunError, "groups have",
    ),
    "another seed": (lambda s: s["feed"].update(seed=7), 4, RunError, "seed=7"),
    "an attribute of the schedule": (
        lambda s: s["step"]["schedule"].update(step=7), 4, RunError, "would replace a method",
    ),
    "generators": (
        lambda s: s["rng"]["numpy"].__setitem__(2, 10**9), 4, RunError, "rng.numpy is a list, not",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_after_a_refusal_everything_is_as_it_was(stopped: Path, case: str) -> None:
    """The step has trained: there is something to change."""
    spoil, epochs, kind, says = REFUSED[case]
    step, feed = make(epochs)
    for batch in list(feed.epoch(0))[:3]:
        step(batch)
    before = everything(step, feed)
    state = load_checkpoint(stopped)
    state["early_stop"] = None  # its weights would be found not to fit before
    spoil(state)
    with pytest.raises(kind, match=says):
        restore(state, step, feed)
    assert same(before, everything(step, feed))
    assert all(p.grad is None for p in step.model.parameters())
    restore(load_checkpoint(stopped), *make())


class Stubborn(nn.Linear):
    """Takes up its weights, and then refuses."""

    def _load_from_state_dict(self, *args: Any, **kwargs: Any) -> None:
        super()._load_from_state_dict(*args, **kwargs)
        raise ValueError("I keep\nto what I have")


def test_a_module_that_refuses_its_state_half_way(stopped: Path) -> None:
    step, feed = make()
    step.model[3].__class__ = Stubborn  # type: ignore[index]
    before = everything(step, feed)
    with pytest.raises(RunError, match="ValueError: I keep to what I have"):
        restore(load_checkpoint(stopped), step, feed)
    assert same(before, everything(step, feed))


@pytest.mark.parametrize("option", ["maximize", "amsgrad"])
def test_a_switch_of_the_optimizer_is_not_left_open(option: str) -> None:
    step, _ = make()
    state = copy.deepcopy(step.state_dict())
    state["optimizer"]["param_groups"][0][option] = None
    with pytest.raises(RunError, match=rf"param_groups\[0\]\.{option} is of type NoneType"):
        step.load_state_dict(state)
