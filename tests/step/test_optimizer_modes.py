"""Optimizers with modes of their own: evaluated, saved and given away in eval mode; trained in
train mode, bitwise as if nobody had looked."""

from __future__ import annotations

import copy
import io
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from bits import same
from trueloop.checkpoint import load_checkpoint
from trueloop.errors import RunError


class ScheduleFreeSGD(torch.optim.Optimizer):
    """Defazio et al., "The road less scheduled", 2024, algorithm 1: the gradient is taken at
    y = (1 - β) z + β x, z takes the steps, and x is the mean of all z. Parameters hold y in train
    mode and x in eval mode."""

    def __init__(self, params: Iterable[nn.Parameter], lr: float, beta: float = 0.9) -> None:
        super().__init__(params, {"lr": lr, "beta": beta, "steps": 0, "train_mode": False})

    def _switch(self, wanted: bool, weight: Callable[[float], float]) -> None:
        for group in self.param_groups:
            if group["train_mode"] is not wanted:
                for p in group["params"]:
                    if "z" in self.state[p]:
                        with torch.no_grad():
                            p.lerp_(self.state[p]["z"], weight(group["beta"]))
            group["train_mode"] = wanted

    def train(self) -> None:
        self._switch(True, lambda beta: 1 - beta)

    def eval(self) -> None:
        self._switch(False, lambda beta: 1 - 1 / beta)

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]
        for group in self.param_groups:
            if not group["train_mode"]:
                raise RuntimeError("the optimizer steps in eval mode")
            share = 1 / (group["steps"] + 1)
            for p in group["params"]:
                if p.grad is None:
                    continue
                z = self.state[p].setdefault("z", p.clone())
                p.lerp_(z, share)
                p.add_(p.grad, alpha=group["lr"] * (group["beta"] * (1 - share) - 1))
                z.sub_(p.grad, alpha=group["lr"])
            group["steps"] += 1


def make_model() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))


def data() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 4, generator=generator)
    return x, (x @ torch.randn(4, 3, generator=generator)).argmax(1)


CRITERION = trueloop.supervised(nn.CrossEntropyLoss())


def step_of(**options: Any) -> trueloop.Step:
    model = make_model()
    return trueloop.Step(model, ScheduleFreeSGD(model.parameters(), lr=0.5), CRITERION, **options)


def feeds() -> tuple[trueloop.Feed, trueloop.Feed]:
    return trueloop.Feed(data(), 8, shuffle=True), trueloop.Feed(data(), 16)


def by_hand(updates: int) -> tuple[nn.Module, ScheduleFreeSGD]:
    """Never evaluated."""
    model, train = make_model(), feeds()[0]
    optimizer = ScheduleFreeSGD(model.parameters(), lr=0.5)
    optimizer.train()
    batches = [batch for epoch in range(4) for batch in train.epoch(epoch)]
    for x, y in batches[:updates]:
        model.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    return model, optimizer


def weights(model: nn.Module) -> list[Tensor]:
    return [p.detach().clone() for p in model.parameters()]


def test_a_run_is_evaluated_at_the_mean_and_trains_as_if_it_were_not(tmp_path: Path) -> None:
    step, (train, val) = step_of(), feeds()
    kept = trueloop.Checkpoints(tmp_path, keep_last=10)
    history = trueloop.fit(step, train, val, epochs=3, checkpoints=kept)
    for epoch, record in enumerate(history.records, start=1):
        model, optimizer = by_hand(5 * epoch)
        optimizer.eval()
        expected = trueloop.evaluate(model, val, CRITERION).scores["loss"]
        assert record.scores["val_loss"] == expected
    model, optimizer = by_hand(15)
    state = step.state_dict()
    assert same(state["train_weights"].values(), model.parameters())
    best = load_checkpoint(tmp_path, which="best")
    assert same(best["step"]["train_weights"].values(), model.parameters())
    optimizer.eval()
    assert same(state["model"].values(), model.parameters())
    assert same(best["model"].values(), model.parameters())
    assert same(step.model.parameters(), model.parameters()), "fit ends with the weights to use"


def test_a_fit_after_a_fit_goes_on_as_one(tmp_path: Path) -> None:
    step, (train, val) = step_of(), feeds()
    trueloop.fit(step, train, val, epochs=1)
    trueloop.evaluate(step.model, val, CRITERION)
    trueloop.fit(step, train, val, epochs=3)
    assert same(step.state_dict()["train_weights"].values(), by_hand(15)[0].parameters())


@pytest.mark.parametrize("stop", [1, 5, 7, 10])
def test_a_run_goes_on_exactly(tmp_path: Path, stop: int) -> None:
    step, (train, val) = step_of(), feeds()
    kept = trueloop.Checkpoints(tmp_path, every="1 updates")
    trueloop.fit(step, train, val, updates=stop, checkpoints=kept)
    second, (train, val) = step_of(), feeds()
    state = load_checkpoint(tmp_path)
    kept = trueloop.Checkpoints(tmp_path, every="1 updates")
    trueloop.fit(second, train, val, updates=12, checkpoints=kept, resume_from=state)
    model, optimizer = by_hand(12)
    found = second.state_dict()
    assert same(found["train_weights"].values(), model.parameters())
    slots = (found["optimizer"]["state"][k]["z"] for k in range(4))
    assert same(slots, (optimizer.state[p]["z"] for p in model.parameters()))


def test_early_stopping_keeps_and_brings_back_the_weights_to_use() -> None:
    step, (train, val) = step_of(), feeds()
    stop = trueloop.EarlyStopping(patience=2)
    history = trueloop.fit(step, train, val, epochs=3, early_stop=stop)
    assert history.best_epoch == 2
    model, optimizer = by_hand(15)
    optimizer.eval()
    assert stop.weights is not None
    assert same(stop.weights.values(), model.parameters())
    assert same(step.model.parameters(), model.parameters())


def test_a_step_goes_back_to_train_mode_by_itself() -> None:
    step, (train, _) = step_of(), feeds()
    for k, batch in enumerate(train.epoch(0)):
        if k == 2:
            step.optimizer.eval()  # type: ignore[attr-defined]  # and nobody goes back
        step(batch)
    theirs = by_hand(5)[0]
    for ours, p in zip(step.model.parameters(), theirs.parameters(), strict=True):
        assert torch.allclose(ours, p, atol=1e-6)
    assert step.optimizer.param_groups[0]["train_mode"]


def test_the_step_gives_the_weights_to_use_and_takes_them_back_bit_by_bit() -> None:
    step, (train, _) = step_of(accumulate=2), feeds()
    batches = [*train.epoch(0), *train.epoch(1)]
    for batch in batches[:5]:  # the last of them within a window
        step(batch)
    before = weights(step.model)
    with step.evaluating():
        inside = weights(step.model)
        with step.evaluating():
            assert same(inside, step.model.parameters())
        assert same(inside, step.model.parameters())
    assert not same(inside, before)
    assert same(before, step.model.parameters())
    step.eval_weights()
    state = copy.deepcopy(step.state_dict())
    assert same(inside, step.model.parameters()), "a state leaves the mode as it is"
    assert same(before, state["train_weights"].values())
    assert state["optimizer"]["param_groups"][0]["train_mode"]
    step(batches[5])
    other = step_of(accumulate=2)
    other.load_state_dict(state)
    assert same(before, other.model.parameters())
    other(batches[5])
    assert same(other.model.parameters(), step.model.parameters())


def test_weights_that_are_loaded_in_eval_mode_are_trained_on() -> None:
    step, (train, _) = step_of(), feeds()
    batches = list(train.epoch(0))
    step(batches[0])
    step.eval_weights()
    with torch.no_grad():
        for p in step.model.parameters():
            p.fill_(0.25)
    step._modes.train()
    z = [step.optimizer.state[p]["z"] for p in step.model.parameters()]
    for p, mean in zip(step.model.parameters(), z, strict=True):
        assert torch.allclose(p, torch.full_like(p, 0.25).lerp(mean, 0.1))


def test_beside_an_optimizer_without_modes() -> None:
    model, (train, val) = make_model(), feeds()
    first, last = model[0], model[2]
    both = [
        ScheduleFreeSGD(first.parameters(), lr=0.5),
        torch.optim.AdamW(last.parameters(), lr=1e-2),
    ]
    step = trueloop.Step(model, both, CRITERION)
    trueloop.fit(step, train, val, epochs=2)
    state = step.state_dict()
    assert list(state["train_weights"]) == ["0.weight", "0.bias"]
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    model = make_model()
    both = [
        ScheduleFreeSGD(model[0].parameters(), lr=0.5),
        torch.optim.AdamW(model[2].parameters(), lr=1e-2),
    ]
    other = trueloop.Step(model, both, CRITERION)
    other.load_state_dict(torch.load(file, weights_only=True))
    batch = next(iter(train.epoch(2)))
    assert torch.equal(step(batch).loss, other(batch).loss)
    assert same(step.model.parameters(), other.model.parameters())


@pytest.mark.parametrize("name", ["0.weight", "unknown"])
def test_train_weights_that_do_not_fit_are_refused(name: str) -> None:
    step, (train, _) = step_of(), feeds()
    step(next(iter(train.epoch(0))))
    state = copy.deepcopy(step.state_dict())
    state["train_weights"][name] = torch.zeros(2)
    other = step_of()
    before = weights(other.model)
    with pytest.raises(RunError, match=f"train weights of '{name}'"):
        other.load_state_dict(state)
    assert same(before, other.model.parameters())
