"""Each schedule against torch's own, tick by tick, on its own clock, as long as the run."""

from __future__ import annotations

import bisect
import copy
import itertools
import math
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from hypothesis import given, settings, strategies as st
from torch import nn
from torch.optim import Optimizer, lr_scheduler as ts

import trueloop
from trueloop import schedules
from trueloop.errors import ConfigError, RunError, ScheduleError
from trueloop.step.schedule import Resolver


def make_optimizer(**options: Any) -> Optimizer:
    model = nn.Linear(1, 1)
    return torch.optim.SGD(
        [{"params": [model.weight], "lr": 0.2}, {"params": [model.bias], "lr": 0.05}],
        lr=0.1,
        **options,
    )


def lrs_by_step(
    schedule: schedules.Schedule,
    epochs: int,
    batches: int,
    accumulate: int = 1,
    scores: list[float] | None = None,
    momentum: float = 0.0,
) -> list[list[float]]:
    """The lrs of all groups in each update of a run with `Step`."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(
        [{"params": [model.weight], "lr": 0.2}, {"params": [model.bias], "lr": 0.05}],
        lr=0.1,
        momentum=momentum,
    )
    step = trueloop.Step(
        model, optimizer, lambda m, b: m(b).mean(), schedule=schedule, accumulate=accumulate
    )
    step.plan(epochs=epochs, batches=batches)
    feed = trueloop.Feed(torch.ones(batches, 1), 1)
    seen = []
    for epoch in range(epochs):
        for batch in feed.epoch(epoch):
            before = [group["lr"] for group in optimizer.param_groups]
            if step(batch).updated:
                seen.append(before)
        step.end_epoch({"val_loss": scores[epoch]} if scores else None)
    return seen


def lrs_by_torch(
    make: Callable[[Optimizer], Any],
    epochs: int,
    updates: int,
    per_epoch: bool,
    scores: list[float] | None = None,
    momentum: float = 0.0,
) -> list[list[float]]:
    optimizer = make_optimizer(momentum=momentum)
    scheduler = make(optimizer)
    seen = []
    for epoch in range(epochs):
        for _ in range(updates):
            seen.append([group["lr"] for group in optimizer.param_groups])
            optimizer.step()
            if not per_epoch:
                scheduler.step()
        if per_epoch:
            scheduler.step(*([scores[epoch]] if scores else []))
    return seen


def warmed(optimizer: Optimizer, rise: int, total: int) -> ts.LRScheduler:
    return ts.SequentialLR(
        optimizer,
        [
            ts.LinearLR(optimizer, 0.01, 1.0, total_iters=rise),
            ts.CosineAnnealingLR(optimizer, total - rise),
        ],
        milestones=[rise],
    )


def trapezoid(
    t: int, rise: int, flat_to: int, end: int, fall: Callable[[float], float], start: float = 0.01
) -> float:
    """The factor of warmup_stable_decay at tick t, written out."""
    if t < rise:
        return start + (1 - start) * (t / rise)
    return 1.0 if t <= flat_to else fall((t - flat_to) / (end - flat_to))


CASES: dict[str, tuple[schedules.Schedule, Callable[[Optimizer], Any], bool]] = {
    "cosine": (schedules.cosine(), lambda o: ts.CosineAnnealingLR(o, 40), False),
    "cosine-floor": (
        schedules.cosine(eta_min=0.01),
        lambda o: ts.CosineAnnealingLR(o, 40, eta_min=0.01),
        False,
    ),
    "cosine-epochs": (schedules.cosine(tick="epoch"), lambda o: ts.CosineAnnealingLR(o, 8), True),
    "cosine-in-words": (schedules.cosine("8 epochs"), lambda o: ts.CosineAnnealingLR(o, 40), False),
    "warmup": (schedules.warmup_cosine("2 epochs"), lambda o: warmed(o, 10, 40), False),
    "warmup-share": (schedules.warmup_cosine(0.1), lambda o: warmed(o, 4, 40), False),
    "warmup-updates": (schedules.warmup_cosine(7), lambda o: warmed(o, 7, 40), False),
    "warmup-none": (schedules.warmup_cosine(0), lambda o: ts.CosineAnnealingLR(o, 40), False),
    "one-cycle": (
        schedules.one_cycle(),
        lambda o: ts.OneCycleLR(o, [0.2, 0.05], total_steps=40),
        False,
    ),
    "restarts": (
        schedules.warm_restarts("1 epochs", mult=1),
        lambda o: ts.CosineAnnealingWarmRestarts(o, 5),
        False,
    ),
    "restarts-doubling": (
        schedules.warm_restarts(cycles=2, mult=3, tick="epoch"),
        lambda o: ts.CosineAnnealingWarmRestarts(o, 2, 3),
        True,
    ),
    "milestones": (schedules.step_decay(), lambda o: ts.MultiStepLR(o, [4, 6], gamma=0.1), True),
    "every": (
        schedules.step_decay("10 updates", gamma=0.5, tick="update"),
        lambda o: ts.StepLR(o, 10, gamma=0.5),
        False,
    ),
    "from-torch": (
        schedules.from_torch(lambda o: ts.PolynomialLR(o, 40, power=2.0), "update"),
        lambda o: ts.PolynomialLR(o, 40, power=2.0),
        False,
    ),
    "from-torch-lambda": (
        schedules.from_torch(lambda o: ts.LambdaLR(o, lambda k: 0.9**k), "epoch"),
        lambda o: ts.LambdaLR(o, lambda k: 0.9**k),
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_tick_by_tick(name: str) -> None:
    schedule, make, per_epoch = CASES[name]
    momentum = 0.9 if name == "one-cycle" else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ours = lrs_by_step(schedule, epochs=8, batches=5, momentum=momentum)
    theirs = lrs_by_torch(make, 8, 5, per_epoch, momentum=momentum)
    assert ours == theirs


STABLE: dict[str, tuple[schedules.Schedule, Callable[[int], float]]] = {
    "defaults": (
        schedules.warmup_stable_decay(),
        lambda t: trapezoid(t, 2, 32, 40, lambda x: 1 - x),
    ),
    "cosine": (
        schedules.warmup_stable_decay(3, "2 epochs", shape="cosine", start_factor=0.5),
        lambda t: trapezoid(t, 3, 30, 40, lambda x: math.cos(math.pi * x / 2) ** 2, 0.5),
    ),
    "1-sqrt": (
        schedules.warmup_stable_decay(0, "100%", shape="1-sqrt"),
        lambda t: trapezoid(t, 0, 0, 40, lambda x: 1 - x**0.5),
    ),
    "epochs": (
        schedules.warmup_stable_decay(1, 3, tick="epoch"),
        lambda t: trapezoid(t // 5, 1, 5, 8, lambda x: 1 - x),
    ),
    "no decay": (
        schedules.warmup_stable_decay(4, 0),
        lambda t: trapezoid(t, 4, 40, 40, lambda x: 1 - x),
    ),
}


@pytest.mark.parametrize("name", STABLE)
def test_warmup_stable_decay_tick_by_tick(name: str) -> None:
    schedule, factor = STABLE[name]
    ours = lrs_by_step(schedule, epochs=8, batches=5)
    expected = [[0.2 * factor(t), 0.05 * factor(t)] for t in range(40)]
    assert ours == [pytest.approx(lrs, rel=1e-12) for lrs in expected]


@pytest.mark.parametrize("mode", ["min", "max"])
def test_plateau_follows_the_metric(mode: str) -> None:
    scores = [1.0, 0.9, 0.95, 0.93, 0.91, 0.8, 0.85, 0.86]
    if mode == "max":
        scores = [1 - s for s in scores]
    monitor = "val_loss" if mode == "min" else "val_accuracy"
    schedule = schedules.plateau(monitor, factor=0.5, patience=1)
    if mode == "max":
        schedule = schedules.plateau("val_loss", mode="max", factor=0.5, patience=1)
    ours = lrs_by_step(schedule, 8, 5, scores=scores)
    theirs = lrs_by_torch(
        lambda o: ts.ReduceLROnPlateau(o, mode, factor=0.5, patience=1), 8, 5, True, scores
    )
    assert ours == theirs
    assert ours[0] != ours[-1]


def test_plateau_knows_which_way_a_score_should_go() -> None:
    assert schedules.resolve_mode("val_accuracy", "auto") == "max"
    assert schedules.resolve_mode("val_top5", "auto") == "max"
    assert schedules.resolve_mode("val_r2", "auto") == "max"
    assert schedules.resolve_mode("val_rmse", "auto") == "min"
    assert schedules.resolve_mode("train_loss", "auto") == "min"
    with pytest.raises(ConfigError, match="mode='min' or mode='max'"):
        schedules.resolve_mode("val_quality", "auto")


@settings(max_examples=30, deadline=None)
@given(
    epochs=st.integers(1, 6),
    batches=st.integers(1, 17),
    accumulate=st.integers(1, 5),
    name=st.sampled_from(["cosine", "one_cycle", "warm_restarts"]),
)
def test_a_schedule_ends_where_the_run_ends_under_accumulation_too(
    epochs: int, batches: int, accumulate: int, name: str
) -> None:
    schedule = schedules.by_name(name)
    assert schedule is not None
    total = epochs * -(-batches // accumulate)
    if name == "warm_restarts" and total < 7:
        return  # three doubling cycles do not fit
    if name == "one_cycle" and total < 4:
        return
    try:
        lrs = lrs_by_step(schedule, epochs, batches, accumulate)
    except ScheduleError:
        # Cycles of whole ticks that miss a short run's end by more than a tick are refused.
        assert name == "warm_restarts"
        assert total < 350
        return
    assert len(lrs) == total
    last = lrs[-1][0]
    assert last <= 0.2 * 0.5 or total <= 3
    if total >= 40 and name != "warm_restarts":
        assert last < 0.2 * 0.01


def step_with(schedule: schedules.Schedule, accumulate: int = 1) -> trueloop.Step:
    model = nn.Linear(1, 1)
    return trueloop.Step(
        model,
        torch.optim.SGD(model.parameters(), lr=0.1),
        lambda m, b: m(b).mean(),
        schedule=schedule,
        accumulate=accumulate,
    )


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (schedules.cosine(400), r"400 updates long, but the run makes 100.*4 times.*micro-batches"),
        (schedules.cosine(30), "30 updates long, but the run makes 100"),
        (schedules.one_cycle(50), "50 updates long"),
        (schedules.warmup_cosine(10, 60), "60 updates long"),
        (schedules.warmup_cosine(100), "fills the whole schedule"),
        (schedules.warmup_stable_decay(100), "fills the whole schedule"),
        (schedules.warmup_stable_decay(30, 71), "a decay of 71 updates do not fit into 100"),
        (schedules.warmup_stable_decay(length=60), "60 updates long"),
        (schedules.cosine("3 epochs", tick="epoch"), "3 epochs long, but the run makes 10"),
        (schedules.warm_restarts(30, mult=1), "end at 90 or 120 updates, but the run at 100"),
        (schedules.step_decay(at=("12 epochs",)), "beyond the run of 10 epochs"),
        (
            schedules.from_torch(lambda o: ts.OneCycleLR(o, 0.1, total_steps=10), "update"),
            "10 updates long, but the run makes 100",
        ),
        (
            schedules.from_torch(lambda o: ts.CosineAnnealingLR(o, 100), "epoch"),
            "100 epochs long, but the run makes 10",
        ),
    ],
)
def test_a_mismatch_is_an_error_at_the_start(schedule: schedules.Schedule, message: str) -> None:
    with pytest.raises(ScheduleError, match=message) as e:
        step_with(schedule, accumulate=4).plan(epochs=10, batches=40)
    assert "\n" not in str(e.value)


def test_a_length_that_depends_on_the_run_asks_for_the_plan() -> None:
    with pytest.raises(ScheduleError, match=r"step\.plan\(epochs"):
        step_with(schedules.cosine())(torch.ones(1, 1))
    with pytest.raises(ScheduleError, match=r"step\.plan\(epochs"):
        step_with(schedules.cosine("3 epochs"))(torch.ones(1, 1))
    step_with(schedules.cosine(300))(torch.ones(1, 1))  # an own length needs none
    with pytest.raises(ScheduleError, match="no length"):
        step_with(schedules.cosine()).plan(epochs=3, batches=None)


def test_a_torch_scheduler_of_another_optimizer_or_clock_is_refused() -> None:
    other = make_optimizer()
    with pytest.raises(ScheduleError, match="a different optimizer"):
        step_with(schedules.from_torch(ts.StepLR(other, 3), "epoch")).plan(epochs=5, batches=2)
    with pytest.raises(ScheduleError, match="tick='metric'"):
        schedules.from_torch(ts.ReduceLROnPlateau(other), "epoch")
    with pytest.raises(ScheduleError, match="tick='update' or 'epoch'"):
        schedules.from_torch(ts.StepLR(other, 3), "metric")
    with pytest.raises(ConfigError, match="unknown tick"):
        schedules.from_torch(ts.StepLR(other, 3), "batch")


@pytest.mark.parametrize("length", ["five", "5 weeks", 1.5, -1, "-5%", "120%", True, "2.5", ""])
def test_lengths_that_are_not_understood(length: Any) -> None:
    with pytest.raises(ConfigError, match="not understood"):
        schedules.parse_length(length)


def test_a_number_in_quotes_has_no_unit() -> None:
    with pytest.raises(ConfigError, match="300 of what\\? write '300 epochs', '300 updates' or"):
        schedules.parse_length("300")


@pytest.mark.parametrize(
    ("length", "expected"),
    [
        (7, (7, "ticks")),
        (0.05, (0.05, "share")),
        ("5%", (0.05, "share")),
        ("12 %", (0.12, "share")),
        ("20 epochs", (20, "epochs")),
        ("1 epoch", (1, "epochs")),
        ("0.5 epochs", (0.5, "epochs")),
        ("1_000 updates", (1000, "updates")),
    ],
)
def test_lengths(length: Any, expected: tuple[float, str]) -> None:
    assert schedules.parse_length(length) == expected


def test_older_torchs_own_deprecated_call_is_not_the_users_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def step_of_torch_2_6(self: Any) -> None:
        self.last_epoch += 1
        index = bisect.bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[index]
        if index > 0 and self._milestones[index - 1] == self.last_epoch:
            scheduler.step(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()

    monkeypatch.setattr(ts.SequentialLR, "step", step_of_torch_2_6)
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = trueloop.Step(
        model, optimizer, lambda m, b: m(b).mean(), schedule=schedules.warmup_cosine(3, 10)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rates = [step(torch.ones(1, 1)).lr for _ in range(10)]
    assert max(rates) == rates[3] == pytest.approx(0.1)


def test_one_cycle_may_not_end_before_the_run() -> None:
    """Torch's scheduler raises at the tick beyond its last, at the very end of the run."""
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step = trueloop.Step(
        model, optimizer, lambda m, b: m(b).mean(), schedule=schedules.one_cycle(9)
    )
    with pytest.raises(ScheduleError, match="9 updates long, but the run makes 10"):
        step.plan(epochs=1, batches=10)


@pytest.mark.parametrize("run", [7, 10, 40, 41, 300])
def test_warm_restarts_fill_a_run_of_any_length(run: int) -> None:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = trueloop.Step(
        model, optimizer, lambda m, b: m(b).mean(), schedule=schedules.warm_restarts()
    )
    step.plan(epochs=1, batches=run)
    rates = [step(torch.ones(1, 1)).lr for _ in range(run)]
    ends = [round(run / 7), round(run * 3 / 7), run]
    expected = [
        (1 + math.cos(math.pi * k / (end - start))) / 2
        for start, end in zip([0, *ends], ends, strict=False)
        for k in range(end - start)
    ]
    assert rates == pytest.approx(expected)
    # At the end of the run, torch's own scheduler would restart: the last value is held instead.
    assert optimizer.param_groups[0]["lr"] == pytest.approx(0.0 if run % 7 else rates[-1])


def test_more_cycles_than_ticks_are_refused() -> None:
    model = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1.0)
    step = trueloop.Step(
        model, optimizer, lambda m, b: m(b).mean(), schedule=schedules.warm_restarts(cycles=9)
    )
    with pytest.raises(ScheduleError, match="9 cycles do not fit into a run of 10 updates"):
        step.plan(epochs=1, batches=10)


def test_a_metric_that_is_not_there_is_named() -> None:
    step = step_with(schedules.plateau("val_accuracy"))
    step.plan(epochs=2, batches=1)
    step(torch.ones(1, 1))
    with pytest.raises(ConfigError, match=r"'val_accuracy'.*val_acc"):
        step.end_epoch({"val_acc": 0.5, "val_loss": 0.1})


def test_unknown_names_offer_the_nearest() -> None:
    with pytest.raises(ConfigError, match="did you mean 'cosine'"):
        schedules.by_name("cosin")
    assert schedules.by_name("none") is None


def test_a_warm_up_goes_to_the_schedules_that_have_one() -> None:
    given = schedules.by_name("one_cycle", warmup="50%")
    assert given is not None
    ours = lrs_by_step(given, 8, 5, momentum=0.9)
    assert ours.index(max(ours)) == 19
    with pytest.raises(ConfigError, match="'plateau' has no warm-up"):
        schedules.by_name("plateau", warmup="5%")


def test_a_decay_goes_to_the_schedule_that_has_one() -> None:
    given = schedules.by_name(
        "warmup_stable_decay", warmup="1 epoch", decay=8, decay_shape="1-sqrt"
    )
    assert given is not None
    ours = [lr for lr, _ in lrs_by_step(given, 8, 5)]
    assert ours == pytest.approx(
        [0.2 * trapezoid(t, 5, 32, 40, lambda x: 1 - x**0.5) for t in range(40)]
    )
    with pytest.raises(ConfigError, match="'cosine' does not take decay: leave it out, or choose"):
        schedules.by_name("cosine", decay="5%")
    with pytest.raises(ConfigError, match="'one_cycle' does not take decay_shape"):
        schedules.by_name("one_cycle", decay_shape="linear")
    with pytest.raises(ConfigError, match="unknown decay shape 'sqrt': did you mean '1-sqrt'"):
        schedules.by_name("warmup_stable_decay", decay_shape="sqrt")
    with pytest.raises(ConfigError, match="eta_min"):
        schedules.warmup_stable_decay(eta_min=-1)


@given(
    rise=st.integers(0, 12),
    flat=st.integers(0, 12),
    fall=st.integers(0, 12),
    shape=st.sampled_from(["linear", "cosine", "1-sqrt"]),
    floor=st.floats(0, 0.01),
)
def test_a_stable_schedule_rises_stays_and_falls_to_its_floor(
    rise: int, flat: int, fall: int, shape: str, floor: float
) -> None:
    total = rise + flat + fall
    if total == rise:
        return
    optimizer = make_optimizer()
    given = schedules.warmup_stable_decay(rise, fall, total, shape=shape, eta_min=floor)
    built = given.build(optimizer, Resolver("update", None))
    seen = []
    for _ in range(total + 1):
        seen.append([group["lr"] for group in optimizer.param_groups])
        optimizer.step()
        built.step()
    for group, peak in enumerate((0.2, 0.05)):
        lrs = [lr[group] for lr in seen]
        assert lrs[rise : rise + flat + 1] == [peak] * (flat + 1)
        assert all(a < b for a, b in itertools.pairwise(lrs[: rise + 1]))
        assert all(a > b for a, b in itertools.pairwise(lrs[rise + flat :]))
        assert lrs[0] == pytest.approx(peak * (0.01 if rise else 1))
        if fall:
            assert lrs[-1] == pytest.approx(floor, abs=1e-15)
            half = {"linear": 0.5, "cosine": 0.5, "1-sqrt": 1 - 0.5**0.5}[shape]
            if fall % 2 == 0:
                middle = floor + (peak - floor) * half
                assert lrs[rise + flat + fall // 2] == pytest.approx(middle)


def trained(total: int, updates: int, state: Any = None, **options: Any) -> trueloop.Step:
    """A step planned for `total` updates, which has made `updates` of them."""
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    optimizer = trueloop.optimizers.adamw(model, 0.1)
    schedule = schedules.warmup_stable_decay(**{"decay": "50%", **options})
    step = trueloop.Step(model, optimizer, lambda m, b: m(b).square().mean(), schedule=schedule)
    step.plan(epochs=1, batches=total)
    if state is not None:
        step.load_state_dict(copy.deepcopy(state))
    while step.updates < updates:
        step(torch.randn(4, 3, generator=torch.Generator().manual_seed(step.updates)))
    return step


def saved_state(step: trueloop.Step) -> dict[str, Any]:
    return copy.deepcopy(step.state_dict())


def assert_same_step(a: trueloop.Step, b: trueloop.Step) -> None:
    """Weights, optimizer and schedule."""
    for one, two in zip(a.model.parameters(), b.model.parameters(), strict=True):
        assert torch.equal(one, two)
    assert repr(a.state_dict()) == repr(b.state_dict())


@pytest.mark.parametrize("taken", [1, 2, 9, 10])
def test_a_run_is_prolonged_from_its_stable_part_as_if_planned_so(taken: int) -> None:
    state = saved_state(trained(20, taken, warmup=2))
    assert_same_step(trained(50, 50, state, warmup=2), trained(50, 50, warmup=2))
    # Once more, from the stable part of the prolonged run, and shortened again.
    state = saved_state(trained(50, 24, state, warmup=2))
    assert_same_step(trained(70, 70, state, warmup=2), trained(70, 70, warmup=2))
    assert_same_step(trained(48, 48, state, warmup=2), trained(48, 48, warmup=2))


def test_a_warm_up_in_a_share_stays_that_of_the_run_as_it_was_begun() -> None:
    state = saved_state(trained(20, 8, warmup="10%"))
    assert_same_step(trained(60, 60, state, warmup="10%"), trained(60, 60, warmup=2))
    # In the warm-up itself, and resumed again in the prolonged run.
    state = saved_state(trained(60, 2, saved_state(trained(20, 1, warmup="10%")), warmup="10%"))
    assert_same_step(trained(60, 60, state, warmup="10%"), trained(60, 60, warmup=2))


def test_a_decay_goes_on_with_its_own_length_and_says_why_not_with_another() -> None:
    state = saved_state(trained(20, 15))
    assert_same_step(trained(20, 20, state), trained(20, 20))
    why = (
        r"after update 15, inside the decay .*\(update 10 to 20\).*\(25 to 50\).*before update 10$"
    )
    with pytest.raises(ScheduleError, match=why):
        trained(50, 50, state)
    with pytest.raises(ScheduleError, match=r"inside the decay"):
        trained(20, 20, state, eta_min=0.01)
    with pytest.raises(ScheduleError, match="begins at 6: make the run longer, or the decay short"):
        trained(12, 12, saved_state(trained(20, 8)))
    with pytest.raises(RunError, match="shape is 'linear', here 'cosine'"):
        trained(20, 20, state, shape="cosine")


def test_a_refused_prolongation_leaves_the_step_as_it_was() -> None:
    state = saved_state(trained(20, 15))
    step = trained(50, 7)
    before = saved_state(step)
    with pytest.raises(ScheduleError):
        step.load_state_dict(copy.deepcopy(state))
    assert repr(step.state_dict()) == repr(before)


class Stream(torch.utils.data.IterableDataset[torch.Tensor]):
    """Samples without a length."""

    def __iter__(self) -> Iterator[torch.Tensor]:
        return (torch.ones(1) for _ in range(50))


ENDING: dict[str, Callable[[], schedules.Schedule]] = {
    "cosine": lambda: schedules.cosine("60 updates"),
    "warmup_cosine": lambda: schedules.warmup_cosine(6, 60),
    "warmup_stable_decay": lambda: schedules.warmup_stable_decay(6, 20, 60),
    "one_cycle": lambda: schedules.one_cycle(60),
    "from_torch": lambda: schedules.from_torch(lambda o: ts.CosineAnnealingLR(o, 60), "update"),
}


@pytest.mark.parametrize("name", ENDING)
def test_past_its_end_a_schedule_holds_its_last_value_and_says_so_once(name: str) -> None:
    """A stream whose length nobody knows, under a schedule that has one."""
    optimizer = make_optimizer()
    model = nn.Linear(1, 1)
    optimizer.param_groups[0]["params"] = [model.weight]
    optimizer.param_groups[1]["params"] = [model.bias]
    step = trueloop.Step(model, optimizer, lambda m, b: m(b).mean(), schedule=ENDING[name]())
    seen: list[float] = []
    sink = lambda r: seen.append(getattr(r, "lr", math.nan))  # noqa: E731
    with pytest.warns(UserWarning, match="ended after 60 updates") as found:
        trueloop.fit(step, trueloop.Feed(Stream(), 1), epochs=3, sinks=[sink])
    lrs = [lr for lr in seen if not math.isnan(lr)]
    assert len(lrs) == 150
    assert len(found) == 1
    last = optimizer.param_groups[0]["lr"]
    assert lrs[60:] == [last] * 90
    assert last == min(lrs)


def test_a_planned_step_that_trains_on_holds_the_last_value() -> None:
    """Planned for 2 epochs and stepped for 4: there is no second cosine."""
    for schedule in (
        schedules.cosine(),
        schedules.warm_restarts(),
        schedules.warm_restarts(5, mult=1),
    ):
        model = nn.Linear(1, 1)
        step = trueloop.Step(
            model, torch.optim.SGD(model.parameters(), lr=0.1), lambda m, b: m(b).mean(),
            schedule=schedule,
        )  # fmt: skip
        step.plan(epochs=2, batches=10 if schedule.name == "cosine" else 35)
        batches = step._plan.batches or 0  # type: ignore[union-attr]
        lrs: list[float] = []

        def train(step: trueloop.Step = step, n: int = batches, lrs: list[float] = lrs) -> None:
            for _ in range(4):
                lrs.extend(step(torch.ones(2, 1)).lr for _ in range(n))
                step.end_epoch()

        with pytest.warns(
            UserWarning, match="the training continues: the learning rate stays"
        ) as w:
            train()
        assert len(w) == 1
        assert w[0].filename == __file__
        assert len(set(lrs[2 * batches :])) == 1
        assert lrs[-1] <= min(lrs[: 2 * batches])


def test_a_run_that_ends_with_its_schedule_says_nothing() -> None:
    names = ("cosine", "warmup_cosine", "warmup_stable_decay", "one_cycle", "warm_restarts")
    for name in (*names, "step_decay"):
        schedule = schedules.by_name(name)
        assert schedule is not None
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            lrs_by_step(schedule, epochs=7, batches=3)
