"""Gradients that explode, updates of the wrong size, overfitting, a loss that does not move."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from trueloop.doctor.live.frames import user_frames
from trueloop.doctor.live.training import monitor
from trueloop.doctor.live.training.gradient_spikes import AFTER, GradientSpikes
from trueloop.doctor.live.training.loss_history import ConstantBaseline, LossHistory, Sizes
from trueloop.doctor.live.training.validation_history import Evaluations, EvaluationSeries
from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.findings import Finding, Location
from trueloop.doctor.model.measurements import GradientJump, TrainingCourse, UpdateSizes
from trueloop.doctor.rules.health.th102_gradient_explodes import GradientExplodes
from trueloop.doctor.rules.health.th103_update_size_unusual import UpdateSizeUnusual
from trueloop.doctor.rules.health.th104_overfitting import Overfitting
from trueloop.doctor.rules.health.th105_loss_stuck import LossStuck

HERE = Location("train.py", 3, 1, 3, 9)
MINE = ("TH102", "TH103", "TH104", "TH105")


def watched(program: str, folder: Path) -> tuple[Watcher, list[Finding]]:
    path = folder / "program.py"
    path.write_text(program, encoding="utf-8")
    user_frames.kind_of.cache_clear()
    watcher = Watcher()
    watcher.nonfinite.bundles = ""
    watcher.start()
    try:
        exec(compile(program, str(path), "exec"), {"__name__": "program", "__file__": str(path)})
    finally:
        watcher.stop()
    found = watcher.findings()
    assert watcher.hub.errors == []
    return watcher, [each for each in found if each.code in MINE]


# ------------------------------------------------------------------ TH102


def jump(losses: list[float], after: list[float], norm: float = 500.0) -> GradientJump | None:
    jumps = GradientSpikes()
    for update, loss in enumerate(losses, 1):
        jumps.trained([loss])
        jumps.usual([1.0 + 0.1 * math.sin(update)])
        if update >= jumps.due:
            jumps.sample(update, 10.0, 2.0)
    assert 800.0 < jumps.limit < 1000.0
    if not jumps.follow(len(losses), norm, 2.5, None):
        return None
    ended = [
        found for each in after
        if jumps.pending is not None and (found := jumps.followed(each)) is not None
    ]  # fmt: skip
    (found,) = ended or [jumps.end()]
    return found.measured(weights=10.0) if found is not None else None


def judged(found: GradientJump | None, **changed: Any) -> list[Finding]:
    rule = GradientExplodes()
    if found is not None:
        rule.on_gradient_jump(replace(found, place=HERE, rate=0.1, **changed))
    return rule.findings


CALM = [2.3] * 10 + [0.4] * 150


def test_a_gradient_that_explodes_has_its_figures_told() -> None:
    found = jump(CALM, [3.0, 7.0, 5.0] + [4.0] * AFTER)
    assert found is not None
    assert (found.update, found.norm, found.level) == (160, 500.0, 10.0)
    assert (found.before, found.peak, found.within) == (0.4, 7.0, 2)
    (finding,) = judged(found)
    assert "50 times its average of 10" in finding.message
    assert "rose from 0.4 to 7 within 2 updates" in finding.message


def test_where_the_loss_jumps_first_the_update_itself_must_have_torn_the_weights_away() -> None:
    assert judged(jump([*CALM, 8.0], [7.0] * AFTER)) == []
    assert judged(jump([*CALM, 0.5], [7.0] * AFTER)) != []


@pytest.mark.parametrize(
    ("after", "changed"),
    [
        ([7.0] * 8 + [0.5] * AFTER, {}),  # it comes back
        ([0.6] * AFTER, {}),  # it has hardly risen
        ([7.0] * 9, {}),  # the run is over before anything can be told
        ([7.0] * AFTER, {"weights": 1.1}),  # the data are others, the weights are not
        ([float("nan")], {}),  # TH101's
    ],
)
def test_what_is_no_explosion(after: list[float], changed: dict[str, float]) -> None:
    assert judged(jump(CALM, after), **changed) == []


def test_a_gradient_that_is_not_large_among_all_is_not_followed() -> None:
    assert jump(CALM, [7.0] * AFTER, norm=200.0) is None


def test_losses_without_a_floor_are_not_judged() -> None:
    assert jump([-each for each in CALM], [7.0] * AFTER) is None


def test_noisy_gradients_stand_out_later() -> None:
    generator = torch.Generator().manual_seed(0)
    calm, noisy = GradientSpikes(), GradientSpikes()
    sizes = torch.randn(400, generator=generator).tolist()
    calm.usual([math.exp(0.2 * size) for size in sizes])
    noisy.usual([math.exp(4 * size) for size in sizes])
    assert noisy.limit > 100 * calm.limit


# ------------------------------------------------------------------ TH104


def overfitted(losses: list[float], training: list[float], stops: bool = False) -> list[Finding]:
    series, rule = EvaluationSeries(kind="MSELoss", stops=stops), Overfitting()
    for number, (loss, trained) in enumerate(zip(losses, training, strict=True), 1):
        assert series.add(100 * number, loss, 4, trained)
        found = series.measured()
        if found is not None:
            rule.on_validation_course(replace(found, place=HERE))
    return rule.findings


RISING = [1.0, 0.7, 0.6, 0.62, 0.65, 0.7, 0.74, 0.79, 0.85]
FALLING = [0.9, 0.6, 0.5, 0.4, 0.33, 0.27, 0.22, 0.18, 0.15]


def test_overfitting_has_its_figures_told() -> None:
    (finding,) = overfitted(RISING, FALLING)
    assert finding.severity == "advice"
    assert "lowest, 0.6, after update 300 (evaluation 3 of 9)" in finding.message
    assert "to 0.793 by update 900" in finding.message
    assert "from 0.5 to 0.183" in finding.message


@pytest.mark.parametrize(
    ("losses", "training", "stops"),
    [
        (RISING, FALLING, True),  # early stopping may be waiting still
        (RISING, [0.5] * 9, False),  # the training loss does not fall
        (RISING[:6], FALLING[:6], False),  # too early to tell
        ([*RISING[2:], 0.9, 1.0], FALLING, False),  # it has never fallen
        ([*RISING, 0.5, 0.4, 0.3], [*FALLING, 0.1, 0.1, 0.1], False),  # it falls again
        ([1.0, 0.01, 0.006, 0.007, 0.008, 0.009, 0.01, 0.011, 0.012], FALLING, False),  # near zero
        ([1.0, 0.7, 0.5, 0.9, 0.55, 0.85, 0.6, 0.9, 0.7], FALLING, False),  # it jitters
    ],
)
def test_what_is_no_overfitting(losses: list[float], training: list[float], stops: bool) -> None:
    assert overfitted(losses, training, stops) == []


def test_evaluations_of_another_length_begin_anew() -> None:
    series = EvaluationSeries()
    for number in range(6):
        series.add(number, 1.0, 10, 1.0)
    series.add(6, 1.0, 20, 1.0)
    assert (series.count, series.measured()) == (1, None)


def test_an_evaluation_is_weighted_by_its_batches() -> None:
    evaluations = Evaluations()
    evaluations.trained([3.0, 1.0])
    evaluations.lost("here", "MSELoss", 1.0, 30)
    evaluations.lost("here", "MSELoss", torch.tensor(5.0), 10)
    evaluations.close(7)
    assert evaluations.waits
    (series,) = evaluations.settle()
    assert series.first is not None
    assert (series.first.loss, series.first.training, series.first.update) == (2.0, 2.0, 7)
    evaluations.lost("here", "MSELoss", 1.0, 30)
    evaluations.close(7)  # nothing was trained in between
    assert evaluations.settle() == []


# ------------------------------------------------------------------ TH103 and TH105

SIZES = UpdateSizes(
    most=1e-2, usual=1e-3, low=8e-4, gradient=1.0, faded=0.5, first_rate=0.1, most_rate=0.1,
    looked=80,
)  # fmt: skip
STUCK = TrainingCourse(
    place=HERE, optimizer=None, first=2.31, latest=2.30, error=0.02, guess=2.30, sizes=SIZES,
    spread=0.5, kind="CrossEntropyLoss", update=226,
)  # fmt: skip


def stuck_but(**changed: Any) -> TrainingCourse:
    sizes = {name: changed.pop(name) for name in UpdateSizes._fields if name in changed}
    return replace(STUCK, sizes=SIZES._replace(**sizes), **changed)


@pytest.mark.parametrize(
    ("changed", "size", "stuck"),
    [
        ({}, "", ""),  # hard, or noise: no cause is known
        ({"gradient": 0.0, "most": 0.0}, "", "exactly zero"),
        ({"gradient": 0.0, "most": 0.0, "latest": 0.0, "first": 0.0}, "", ""),  # done
        ({"most": 1e-8}, "less than", "no update changed"),
        ({"most": 1e-8, "first_rate": 1e-9}, "", ""),  # warm-up
        ({"most": 1e-8, "first": 0.3, "latest": 0.3}, "", ""),  # learnt already
        ({"most": 1e-5}, "less than", ""),
        ({"faded": 1e-7, "spread": 1e-4}, "", "vanishes"),
        ({"faded": 1e-7}, "", ""),  # predictions differ
        ({"faded": 1e-7, "spread": None}, "", ""),
        ({"low": 0.3, "usual": 0.4}, "more than a tenth", ""),
        ({"low": 0.3, "latest": 9.0, "first": 8.0}, "more than a tenth", "each update changes"),
        ({"low": 0.3, "latest": 1.5}, "", ""),  # it learns all the same
    ],
)
def test_the_course_of_training_is_judged(changed: dict[str, Any], size: str, stuck: str) -> None:
    for kind, part in ((UpdateSizeUnusual, size), (LossStuck, stuck)):
        rule = kind()
        rule.on_training_course(stuck_but(**changed))
        assert [part in found.message for found in rule.findings] == ([True] if part else [])


def test_a_finding_is_taken_back_where_training_comes_to_life() -> None:
    rule = LossStuck()
    rule.on_training_course(stuck_but(faded=1e-7, spread=1e-4))
    assert rule.findings
    rule.on_training_course(stuck_but(latest=1.0))
    assert rule.findings == []


def test_the_course_is_that_of_the_first_and_the_latest_losses() -> None:
    course = LossHistory()
    course.add([2.0, 4.0] * 32 + [9.0] * 100)
    means = course.means()
    assert means is not None
    assert (means.first, means.latest) == (3.0, 9.0)
    assert means.error == pytest.approx((64 / 63 / 64) ** 0.5)
    course.add([math.inf])
    assert course.means() is None


def test_what_guessing_loses() -> None:
    x = torch.randn(4000, 3, generator=torch.Generator().manual_seed(0))
    labels = torch.arange(4000) % 4
    guess = ConstantBaseline()
    guess.see("CrossEntropyLoss", {"input": torch.zeros(4000, 4), "target": labels})
    assert guess.loss == pytest.approx(math.log(4))
    for kind, wanted in {"MSELoss": 1.0, "L1Loss": (2 / math.pi) ** 0.5}.items():
        guess = ConstantBaseline()
        guess.see(kind, {"input": x, "target": x})
        assert guess.loss == pytest.approx(wanted, rel=0.05)
    guess = ConstantBaseline()
    guess.see("BCELoss", {"input": x, "target": (x > 0).float()})
    assert guess.loss == pytest.approx(math.log(2), rel=0.01)


@pytest.mark.parametrize(
    "given",
    [
        {"input": torch.zeros(8, 3), "target": torch.zeros(8).long(), "weight": torch.ones(3)},
        {"input": torch.zeros(8, 3), "target": torch.zeros(8, 3)},  # soft targets
        {"input": torch.zeros(2, 3), "target": torch.zeros(2).long()},
    ],
)
def test_what_guessing_loses_is_not_always_known(given: dict[str, Any]) -> None:
    guess = ConstantBaseline()
    guess.see("CrossEntropyLoss", given)
    assert guess.loss is None


def test_the_size_of_updates_is_measured_against_the_weights() -> None:
    model = nn.Sequential(nn.Linear(6, 5), nn.Linear(5, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    sizes = Sizes()
    for update in range(1, 41):
        for parameter in model.parameters():
            parameter.grad = parameter.detach().clone()
        sizes.before(optimizer)
        optimizer.step()
        sizes.after(optimizer, update)
    values = sizes.measured()
    assert values is not None
    for key, wanted in {"most": 0.01, "low": 0.01, "usual": 0.01, "faded": 1.0}.items():
        assert getattr(values, key) == pytest.approx(wanted, rel=1e-4)
    assert (values.first_rate, values.most_rate, values.looked) == (0.01, 0.01, 40)


# ------------------------------------------------------------------ whole programs

PROGRAM = """
import torch, torch.nn.functional as F
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
other = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=1e-9)
second = torch.optim.SGD(other.parameters(), lr=1e-9)
data = torch.randn(16, 4)
for step in range(240):
    x = torch.randn(16, 4)
    y = x.sum(1, keepdim=True)
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    {step}
"""


@pytest.mark.parametrize(
    ("loss", "step", "codes"),
    [
        ("F.mse_loss(model(x), y)", "optimizer.step()", ["TH105"]),
        ("F.mse_loss(model(x), y) / 4", "optimizer.step()", ["TH105"]),
        # Two in turns, whose losses may oppose.
        (
            "F.mse_loss(model(x), y)",
            "optimizer.step(); F.mse_loss(other(x), y).backward(); second.step()",
            [],
        ),
        # No loss function.
        ("-(model(x) * y).mean()", "optimizer.step()", []),
        # Regularised.
        ("F.mse_loss(model(x), y) + model[0].weight.norm()", "optimizer.step()", []),
        # Targets of a model.
        ("F.mse_loss(model(x), y + other(x).detach())", "optimizer.step()", []),
        # Weighted by rewards.
        ("(F.mse_loss(model(x), y, reduction='none') * y).mean()", "optimizer.step()", []),
        # A rate that rises.
        (
            "F.mse_loss(model(x), y)",
            "optimizer.step(); optimizer.param_groups[0]['lr'] = 1e-9 * step",
            [],
        ),
    ],
)
def test_what_is_a_measure_of_progress(
    loss: str, step: str, codes: list[str], tmp_path: Path
) -> None:
    _, found = watched(PROGRAM.format(loss=loss, step=step), tmp_path)
    assert [each.code for each in found] == codes
    if codes:
        assert found[0].place.line == 16


@pytest.mark.filterwarnings("ignore:Using a target size")
def test_another_rule_explains_it(tmp_path: Path) -> None:
    program = PROGRAM.format(loss="F.mse_loss(model(x), y.squeeze(1))", step="optimizer.step()")
    watcher, found = watched(program, tmp_path)
    assert found == []
    assert "TL404" in [each.code for each in watcher.findings()]


def test_a_scaled_loss_is_taken_as_it_was(tmp_path: Path) -> None:
    program = PROGRAM.replace("loss.backward()", "scaler.scale(loss).backward()").replace(
        "data =", 'scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)\ndata ='
    )
    step = "scaler.step(optimizer); scaler.update()"
    watcher, found = watched(program.format(loss="F.mse_loss(model(x), y)", step=step), tmp_path)
    assert [each.code for each in found] == ["TH105"]
    stream = watcher.training.stream
    assert stream is not None
    assert stream.trained == pytest.approx(stream.level)


def test_several_backwards_are_no_single_measure(tmp_path: Path) -> None:
    step = "F.mse_loss(model(x), y).backward(); optimizer.step()"
    watcher, found = watched(PROGRAM.format(loss="F.mse_loss(model(x), y)", step=step), tmp_path)
    assert found == []
    assert watcher.training.stream is not None
    assert watcher.training.stream.odd


def test_each_fold_is_a_run_of_its_own(tmp_path: Path) -> None:
    program = """
import torch, torch.nn.functional as F
from torch import nn
for fold in range(3):
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for step in range(12):
        F.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1)).backward()
        optimizer.step()
        optimizer.zero_grad()
"""
    watcher, _ = watched(program, tmp_path)
    stream = watcher.training.stream
    assert stream is not None
    assert (stream.updates, stream.mixed, stream.odd) == (12, False, False)


EVALUATED = """
import torch, torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
torch.manual_seed(0)
model = nn.Linear(4, 1)
x = torch.randn(64, 4)
data = TensorDataset(x, x.sum(1, keepdim=True))
train, held_out = DataLoader(data, batch_size=16), DataLoader(data, batch_size=24)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

def evaluate(loader):
    with torch.no_grad():
        return sum(F.mse_loss(model(a), b, reduction="{reduction}").item() for a, b in loader)

for epoch in range(20):
    for a, b in train:
        optimizer.zero_grad()
        F.mse_loss(model(a), b).backward()
        optimizer.step()
    for loader in (train, held_out):
        evaluate(loader)
"""


@pytest.mark.parametrize("reduction", ["mean", "sum"])
def test_each_pass_over_data_is_an_evaluation_of_its_own(reduction: str, tmp_path: Path) -> None:
    watcher, found = watched(EVALUATED.format(reduction=reduction), tmp_path)
    assert found == []
    assert watcher.training.stream is not None
    series = list(watcher.training.stream.evaluations.series.values())
    assert [(each.calls, each.count, each.qualifies) for each in series] == [
        (4, 20, True),
        (3, 20, True),
    ]
    firsts = [each.first.loss for each in series if each.first is not None]
    assert firsts[0] == pytest.approx(firsts[1], rel=1e-4)  # of the same samples


def test_nothing_is_asked_where_no_rule_wants_it() -> None:
    assert not Watcher(rules=[]).hub.follows_training
    assert Watcher(rules=[Overfitting]).hub.follows_training


def test_training_is_the_same_to_the_bit() -> None:
    def train() -> list[torch.Tensor]:
        torch.manual_seed(0)
        model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.2), nn.Linear(8, 1))
        optimizer = torch.optim.Adam(model.parameters(), lr=0.05)
        for _ in range(240):
            loss = F.mse_loss(model(torch.randn(8, 4)), torch.randn(8, 1))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        return [each.detach() for each in model.parameters()]

    alone = train()
    watcher = Watcher(rules=[GradientExplodes, UpdateSizeUnusual, Overfitting, LossStuck])
    watcher.start()
    try:
        beside = train()
    finally:
        watcher.stop()
    assert watcher.hub.errors == []
    assert all(torch.equal(a, b) for a, b in zip(alone, beside, strict=True))


def test_nothing_piles_up_where_no_optimizer_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "_LONGEST", 30)
    model = nn.Linear(2, 1)
    watcher = Watcher(rules=[LossStuck])
    watcher.start()
    try:
        for _ in range(40):
            F.mse_loss(model(torch.ones(4, 2)), torch.ones(4, 1)).backward()
    finally:
        watcher.stop()
    cycle = watcher.training._cycle
    assert len(cycle.forwards) + len(cycle.losses) + len(cycle.criteria) <= 33
    assert watcher.hub.errors == []
