"""Parts that are frozen at first: training as a loop by hand that thaws them, resume included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

import trueloop
from bits import same
from on_ranks import on_ranks
from trueloop import Checkpoints, Feed, Step, load_checkpoint, optimizers, schedules
from trueloop.errors import ConfigError, RunError

CRITERION = trueloop.supervised(nn.CrossEntropyLoss())


def make_model() -> nn.ModuleDict:
    torch.manual_seed(0)

    class Net(nn.ModuleDict):
        def forward(self, x: Tensor) -> Tensor:
            out: Tensor = self["head"](self["body"](self["stem"](x)))
            return out

    body = nn.Sequential(nn.Linear(8, 8), nn.Tanh())
    return Net({"stem": nn.Linear(4, 8), "body": body, "head": nn.Linear(8, 3)})


def feed() -> Feed:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(40, 4, generator=generator)
    return Feed((x, (x @ torch.randn(4, 3, generator=generator)).argmax(1)), 8, shuffle=True)


UNFREEZE = {"stem": "7 updates", "body": "1 epoch"}


def step_of(**options: Any) -> Step:
    model = make_model()
    optimizer = optimizers.adamw(model, lr=0.05, weight_decay=0.1)
    return Step(model, optimizer, CRITERION, unfreeze=UNFREEZE, **options)


def batches() -> list[Any]:
    return [batch for epoch in range(3) for batch in feed().epoch(epoch)]


def frozen(model: Any) -> list[str]:
    return [name for name in ("stem", "body") if not next(model[name].parameters()).requires_grad]


def test_training_is_that_of_a_loop_that_adds_the_group_by_hand() -> None:
    step, model = step_of(), make_model()

    def group(module: nn.Module, weight_decay: float, matrices: bool) -> dict[str, Any]:
        params = [p for p in module.parameters() if (p.ndim > 1) is matrices]
        return {"params": params, "weight_decay": weight_decay}

    def groups(name: str) -> list[dict[str, Any]]:
        return [group(model[name], 0.1, True), group(model[name], 0.0, False)]

    model["stem"].requires_grad_(False)
    model["body"].requires_grad_(False)
    optimizer = torch.optim.AdamW(groups("head"), lr=0.05, fused=True)
    for update, (x, y) in enumerate(batches()):
        for name, at in (("stem", 7), ("body", 5)):
            if update == at:
                model[name].requires_grad_(True)
                for added in groups(name):
                    optimizer.add_param_group(added)
        step((x, y))
        if update in (4, 9):
            step.end_epoch()
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        assert same(step.model, model), update
        assert frozen(step.model) == frozen(model)


def test_a_schedule_drives_the_thawed_part_as_the_others() -> None:
    step, model = step_of(schedule=schedules.cosine(), clip_norm=0.5), make_model()
    optimizer = torch.optim.AdamW(optimizers.parameter_groups(model, 0.1), lr=0.05, fused=True)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 15)
    trueloop.fit(step, feed(), epochs=3)
    for update, (x, y) in enumerate(batches()):
        model["stem"].requires_grad_(update >= 7)
        model["body"].requires_grad_(update >= 5)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 0.5)
        optimizer.step()
        schedule.step()
    assert same(step.model, model)


@pytest.mark.parametrize("stop", [3, 6, 7, 9])
def test_a_run_goes_on_exactly(stop: int, tmp_path: Path) -> None:
    whole, first, second = (step_of(schedule=schedules.cosine(), accumulate=2) for _ in range(3))
    trueloop.fit(whole, feed(), epochs=5)

    def stops(record: Any) -> None:
        if isinstance(record, trueloop.StepRecord) and record.update == stop:
            raise KeyboardInterrupt

    kept = Checkpoints(tmp_path, every="1 updates", keep_best=None)
    with pytest.raises(KeyboardInterrupt):
        trueloop.fit(first, feed(), epochs=5, checkpoints=kept, sinks=[stops])
    trueloop.fit(second, feed(), epochs=5, resume_from=load_checkpoint(tmp_path))
    assert same(whole.state_dict(), second.state_dict())


def test_a_loaded_state_says_what_is_frozen() -> None:
    step, other = step_of(), step_of()
    states = []
    for update, batch in enumerate(batches()[:8]):
        step(batch)
        if update in (2, 6):
            states.append(step.state_dict())
        if update == 4:
            step.end_epoch()
    assert frozen(step.model) == []
    other.load_state_dict(states[1])
    assert frozen(other.model) == []
    other.load_state_dict(states[0])
    assert frozen(other.model) == ["stem", "body"]
    model = make_model()
    plain = Step(model, optimizers.adamw(model, lr=0.05, weight_decay=0.1), CRITERION)
    with pytest.raises(RunError, match="unfreeze='stem: 7 updates, body: 1 epoch'"):
        plain.load_state_dict(states[0])


def on_each_rank() -> Any:
    step = step_of(parallel="ddp", schedule=schedules.cosine())
    trueloop.fit(step, feed(), epochs=3)
    return {name: p.tolist() for name, p in step.model.named_parameters()}


def test_ranks_thaw_together() -> None:
    one, other = on_ranks(2, on_each_rank)
    assert one == other
    alone = step_of(schedule=schedules.cosine())
    trueloop.fit(alone, feed(), epochs=3)
    for name, p in alone.model.named_parameters():
        assert torch.allclose(p, torch.tensor(one[name]), atol=1e-5)


def of(unfreeze: Any, *, before: bool = False, **options: Any) -> Step:
    model = make_model()
    if before:
        model["body"].requires_grad_(False)
    return Step(model, optimizers.adamw(model), CRITERION, unfreeze=unfreeze, **options)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda: of("body"), r"write unfreeze=\{'backbone': '2 epochs'\}"),
        (lambda: of({"bodies": "2 epochs"}), "'bodies'.*did you mean 'body'"),
        (lambda: of({"body": "2"}), "2 of what"),
        (lambda: of({"body": "1.5 epochs"}), "is not a whole number of epochs"),
        (lambda: of({"body": "2 epochs"}, before=True), r"does not have 'body\.0\.weight'"),
        (lambda: of({"body": "20%"})(batches()[0]), r"call step\.plan"),
    ],
)
def test_what_cannot_work_is_refused(wrong: Any, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        wrong()
