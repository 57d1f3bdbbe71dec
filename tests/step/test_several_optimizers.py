"""Several optimizers that make one update: bitwise the loop by hand, and resumed exactly."""

from __future__ import annotations

import copy
import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.optim import AdamW, Optimizer
from torch.optim.lr_scheduler import CosineAnnealingLR, LRScheduler, StepLR

import trueloop
from trueloop import schedules
from trueloop.errors import ConfigError, NonFiniteError, RunError, ScheduleError
from trueloop.step import precision as precisions

pytestmark = pytest.mark.skipif(
    not hasattr(torch.optim, "Muon"), reason="torch has Muon from 2.9 on"
)
UPDATES = 12
Batch = tuple[Tensor, Tensor]


class Net(nn.Module):
    """An embedding, two hidden matrices with a norm, and a head."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding = nn.Embedding(11, 8)
        self.up = nn.Linear(8, 12)
        self.norm = nn.LayerNorm(12)
        self.down = nn.Linear(12, 8)
        self.head = nn.Linear(8, 11)

    def forward(self, tokens: Tensor) -> Tensor:
        hidden = self.embedding(tokens)
        hidden = hidden + self.down(torch.relu(self.norm(self.up(hidden))))
        return self.head(hidden)  # type: ignore[no-any-return]


def optimizers(model: Net) -> list[Optimizer]:
    hidden = [model.up.weight, model.down.weight]
    rest = [p for p in model.parameters() if all(p is not h for h in hidden)]
    return [
        torch.optim.Muon(hidden, lr=0.02, weight_decay=0.1),
        AdamW(rest, lr=3e-3, weight_decay=0.01, fused=True),
    ]


def batches(count: int, size: int = 6) -> list[Batch]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randint(0, 11, (count, size, 5), generator=generator)
    return [(row, (row * 3 + 1) % 11) for row in tokens]


def loss_fn(model: nn.Module, batch: Batch) -> Tensor:
    return nn.functional.cross_entropy(model(batch[0]).flatten(0, 1), batch[1].flatten())


def by_hand(
    precision: str,
    clip: float | None,
    make: list[Callable[[Optimizer], LRScheduler]] | None,
    accumulate: int,
) -> tuple[Net, list[Optimizer]]:
    """The loop as one writes it, with the one line that torch leaves out: no optimizer steps where
    any of the gradients has overflowed."""
    model = Net()
    both = optimizers(model)
    drivers = [function(each) for function, each in zip(make, both, strict=True)] if make else []
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16")
    dtype = {"fp32": None, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
    data = batches(UPDATES * accumulate)
    for k in range(UPDATES):
        model.zero_grad()
        for batch in data[k * accumulate : (k + 1) * accumulate]:
            with torch.autocast("cpu", dtype=dtype or torch.bfloat16, enabled=dtype is not None):
                loss = loss_fn(model, batch)
            scaler.scale(loss / accumulate).backward()
        for each in both:
            scaler.unscale_(each)
        finite = all(torch.isfinite(p.grad).all() for p in model.parameters() if p.grad is not None)
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        if finite:
            for each in both:
                scaler.step(each)
        scaler.update()
        if finite:
            for driver in drivers:
                driver.step()
    return model, both


def ours(model: Net, **options: Any) -> trueloop.Step:
    return trueloop.Step(model, optimizers(model), loss_fn, **options)


def assert_same(ours: nn.Module, theirs: nn.Module) -> None:
    for (name, a), b in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        assert torch.equal(a, b), f"{name} differs by {(a - b).abs().max()}"


def assert_same_states(ours: list[Any], theirs: list[Any]) -> None:
    for a, b in zip(ours, theirs, strict=True):
        assert repr(a.state_dict()["param_groups"]) == repr(b.state_dict()["param_groups"])
        for key, slots in a.state_dict()["state"].items():
            for name, slot in slots.items():
                assert torch.equal(slot, b.state_dict()["state"][key][name]), (key, name)


_COSINES: list[Callable[[Optimizer], LRScheduler]] = [
    lambda optimizer: CosineAnnealingLR(optimizer, UPDATES),
    lambda optimizer: CosineAnnealingLR(optimizer, UPDATES),
]
_APART: list[Callable[[Optimizer], LRScheduler]] = [_COSINES[0], lambda o: StepLR(o, 7, 0.5)]


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("clip", [None, 0.5])
@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize(
    ("make", "schedule"),
    [
        (None, None),
        (_COSINES, schedules.cosine(UPDATES)),
        (_APART, [schedules.cosine(UPDATES), schedules.step_decay(7, gamma=0.5, tick="update")]),
    ],
    ids=["constant", "one schedule", "one each"],
)
def test_it_is_bitwise_the_loop_by_hand(
    make: list[Callable[[Optimizer], LRScheduler]] | None,
    schedule: Any,
    precision: str,
    clip: float | None,
    accumulate: int,
) -> None:
    theirs, both = by_hand(precision, clip, make, accumulate)
    model = Net()
    step = ours(
        model, schedule=schedule, precision=precision, clip_norm=clip, accumulate=accumulate
    )
    records = [step(batch) for batch in batches(UPDATES * accumulate)]
    assert_same(model, theirs)
    assert_same_states(list(step.optimizers), both)
    assert [r.update for r in records][-1] == step.updates == UPDATES - step.skipped


def test_a_record_names_the_rate_of_every_group() -> None:
    model = Net()
    muon, adamw = optimizers(model)
    adamw.param_groups[0]["name"] = "decay"
    bias = adamw.param_groups[0]["params"].pop()
    adamw.add_param_group({"params": [bias], "lr": 0.5})
    step = trueloop.Step(model, [muon, adamw], loss_fn)
    record = step(batches(1)[0], last=False)
    assert dict(record.lrs) == {"muon/0": 0.02, "adamw/decay": 3e-3, "adamw/1": 0.5}
    assert record.lr == 0.02


def test_a_second_optimizer_of_one_class_is_numbered() -> None:
    model = nn.Linear(2, 2)
    step = trueloop.Step(
        model, [AdamW([model.weight], lr=0.1), AdamW([model.bias], lr=0.2)], _square
    )
    assert dict(step(torch.ones(1, 2)).lrs) == {"adamw/0": 0.1, "adamw_2/0": 0.2}


def _square(model: nn.Module, batch: Tensor) -> Tensor:
    return model(batch).square().mean()  # type: ignore[no-any-return]


def test_a_list_of_one_is_one_optimizer() -> None:
    model = nn.Linear(2, 2)
    step = trueloop.Step(model, [AdamW(model.parameters(), lr=0.1)], _square)
    assert step.optimizer is step.optimizers[0]
    assert dict(step(torch.ones(1, 2)).lrs) == {"0": 0.1}
    assert "optimizers" not in step.state_dict()["optimizer"]


def _poisoned(batch: Batch, model: Net) -> Batch:
    """A row of the embedding that is not finite makes every gradient so."""
    with torch.no_grad():
        model.embedding.weight[3] = float("inf")
    return torch.full_like(batch[0], 3), batch[1]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_an_update_that_is_not_finite_changes_neither(precision: str) -> None:
    model = Net()
    step = ours(model, nonfinite="skip", precision=precision, schedule=schedules.cosine(9))
    first, bad = batches(2)
    step(first)
    bad = _poisoned(bad, model)
    before = copy.deepcopy(model.state_dict())
    states = [copy.deepcopy(each.state_dict()) for each in step.optimizers]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        record = step(bad)
    assert record.skipped
    assert not record.updated
    assert step.skipped == 1
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    assert [repr(each.state_dict()) for each in step.optimizers] == [repr(s) for s in states]


def test_stop_raises_for_either() -> None:
    model = Net()
    step = ours(model)
    with pytest.raises(NonFiniteError, match="update 1"):
        step(_poisoned(batches(1)[0], model))


class _Overflow(torch.autograd.Function):
    """The identity, whose gradient is infinite."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Tensor:
        return torch.full_like(gradient, float("inf"))


def _overflowing(part: str) -> Callable[[nn.Module, Batch], Tensor]:
    def overflow(model: nn.Module, batch: Batch) -> Tensor:
        value = getattr(model, part).weight
        return loss_fn(model, batch) + 0.0 * _Overflow.apply(value).sum()  # type: ignore[no-untyped-call]

    return overflow


@pytest.mark.parametrize("part", ["up", "head"])
def test_an_overflow_of_one_leaves_out_both_and_lowers_the_scale_once(part: str) -> None:
    model = Net()
    step = trueloop.Step(model, optimizers(model), _overflowing(part), precision="fp16")
    before = copy.deepcopy(model.state_dict())
    scale = step.precision.state_dict()["scale"]
    record = step(batches(1)[0])
    assert record.skipped
    assert step.precision.state_dict()["scale"] == scale / 2
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name
    step.loss_fn = loss_fn
    assert step(batches(1)[0]).updated


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_an_optimizer_without_gradients_is_not_in_the_way(precision: str) -> None:
    model = Net()
    for p in (model.up.weight, model.down.weight):
        p.requires_grad_(False)
    step = ours(model, precision=precision)
    before = model.up.weight.clone(), model.head.weight.clone()
    assert step(batches(1)[0]).updated
    assert torch.equal(model.up.weight, before[0])
    assert not torch.equal(model.head.weight, before[1])


def test_two_overflows_leave_a_fused_step_out_as_one_does() -> None:
    """A fused optimizer leaves its step out where the scaler's flag is exactly 1."""
    precision = precisions.Float16(torch.device("cpu"))
    a, b, c = (nn.Parameter(torch.ones(2)) for _ in range(3))
    optimizer = AdamW([a, b, c], lr=0.1, fused=True)
    precision.backward(a.sum())
    precision.scaler.unscale_(optimizer)
    # As sharded parameters and two others, which the scaler does not see together with them.
    b.grad, c.grad = torch.full((2,), float("inf")), torch.full((2,), float("nan"))
    precision._unscale_others(optimizer, [b.grad, c.grad])
    assert not precision.step([optimizer])
    assert all(torch.equal(p, torch.ones(2)) for p in (a, b, c))


def _on_disk(state: dict[str, Any]) -> dict[str, Any]:
    file = io.BytesIO()
    torch.save(state, file)
    file.seek(0)
    return torch.load(file, weights_only=True)  # type: ignore[no-any-return]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("stop", [0, 1, 2, 5, 12, 13])
def test_it_goes_on_exactly_from_anywhere(stop: int, precision: str) -> None:
    """Also within an accumulation window: `stop` counts micro-batches."""
    options: dict[str, Any] = {
        "accumulate": 3,
        "clip_norm": 0.5,
        "precision": precision,
        "schedule": [schedules.cosine(10), schedules.step_decay(2, tick="update")],
    }
    data = batches(18)
    straight = ours(Net(), **options)
    for batch in data:
        straight(batch)
    first = ours(Net(), **options)
    for batch in data[:stop]:
        first(batch)
    second = ours(Net(), **options)
    with torch.no_grad():
        for p in second.model.parameters():
            p.add_(1.0)
    second.load_state_dict(_on_disk(first.state_dict()))
    for batch in data[stop:]:
        second(batch)
    assert_same(second.model, straight.model)
    assert_same_states(list(second.optimizers), list(straight.optimizers))
    assert second.updates == straight.updates


def test_a_state_that_does_not_fit_changes_nothing() -> None:
    step = ours(Net())
    step(batches(1)[0])
    state = _on_disk(step.state_dict())
    model = Net()
    both = optimizers(model)
    alone = trueloop.Step(model, AdamW(model.parameters()), loss_fn)
    with pytest.raises(RunError, match="the optimizers Muon, AdamW, and this step has one"):
        alone.load_state_dict(state)
    with pytest.raises(RunError, match="with one optimizer, and this step has"):
        ours(Net()).load_state_dict(_on_disk(alone.state_dict()))
    turned = trueloop.Step(model, both[::-1], loss_fn)
    with pytest.raises(RunError, match="in the same order"):
        turned.load_state_dict(state)
    state["optimizer"]["state"][0]["momentum_buffer"] = torch.zeros(3, 3)
    model = Net()
    other = ours(model)
    before = copy.deepcopy(model.state_dict())
    with pytest.raises(RunError, match=r"step.optimizers\[0\].state\[0\].momentum_buffer"):
        other.load_state_dict(state)
    assert not other.optimizers[0].state
    assert not other.optimizers[1].state
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name]), name


def test_a_part_that_is_refused_late_puts_the_first_back() -> None:
    step = ours(Net())
    step(batches(1)[0])
    state = _on_disk(step.state_dict())
    state["optimizer"]["state"][3]["exp_avg"] = torch.zeros(3, 3)
    other = ours(Net())
    with pytest.raises(RunError, match=r"step.optimizers\[1\]"):
        other.load_state_dict(state)
    assert not other.optimizers[0].state
    assert not other.optimizers[1].state


def test_a_parameter_of_two_optimizers_is_refused() -> None:
    model = Net()
    muon, _ = optimizers(model)
    with pytest.raises(ConfigError, match=r"'up.weight' is in two optimizers, Muon and AdamW"):
        trueloop.Step(model, [muon, AdamW(model.parameters())], loss_fn)
    with pytest.raises(ConfigError, match="the same Muon twice"):
        trueloop.Step(model, [muon, muon], loss_fn)


def test_a_parameter_of_none_is_refused_with_its_first_gradient() -> None:
    model = Net()
    muon, _ = optimizers(model)
    rest = [*model.embedding.parameters(), *model.head.parameters()]
    step = trueloop.Step(model, [muon, AdamW(rest)], loss_fn)
    with pytest.raises(ConfigError, match=r"up.bias.*none of the optimizers has them"):
        step(batches(1)[0])


def test_what_is_no_list_of_optimizers_is_refused() -> None:
    model = Net()
    with pytest.raises(ConfigError, match="must be a torch optimizer, not"):
        trueloop.Step(model, [], loss_fn)
    with pytest.raises(ConfigError, match="must be a torch optimizer, not"):
        trueloop.Step(model, [optimizers(model)[0], "adamw"], loss_fn)  # type: ignore[list-item]
    with pytest.raises(ConfigError, match="AdamW has none of the model's parameters"):
        trueloop.Step(model, [optimizers(model)[0], AdamW([nn.Parameter(torch.ones(1))])], loss_fn)


def test_schedules_that_do_not_fit_are_refused() -> None:
    model = Net()
    with pytest.raises(ConfigError, match="schedule has 1 entries, and the step has 2 optimizers"):
        ours(model, schedule=[schedules.cosine(5)])
    with pytest.raises(ConfigError, match="is not a schedule"):
        ours(model, schedule=[schedules.cosine(5), 3])
    both = optimizers(model)
    built = schedules.from_torch(StepLR(both[0], 3), tick="update")
    step = trueloop.Step(model, both, loss_fn, schedule=built)
    with pytest.raises(ScheduleError, match=r"drives a different optimizer.*schedule=\[...\]"):
        step(batches(1)[0])
    step = trueloop.Step(model, both, loss_fn, schedule=[built, None])
    step(batches(1)[0])


def test_one_optimizer_of_several_is_asked_for_by_its_place() -> None:
    with pytest.raises(ConfigError, match=r"write step.optimizers"):
        _ = ours(Net()).optimizer


def _train(step: trueloop.Step, data: list[Batch]) -> None:
    for batch in data:
        step(batch)


def test_one_schedule_for_all_keeps_the_ratios_and_ends_with_one_warning() -> None:
    model = Net()
    step = ours(model, schedule=schedules.cosine(4))
    data = batches(7)
    rates = [step(batch).lrs for batch in data[:4]]
    for rate in rates:
        assert rate["adamw/0"] / rate["muon/0"] == pytest.approx(3e-3 / 0.02)
    with pytest.warns(UserWarning, match="ended after 4 updates") as caught:
        _train(step, data[4:])
    assert len(caught) == 1
    assert caught[0].filename == __file__
