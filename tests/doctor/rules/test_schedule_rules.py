"""The rules on schedules, over variations of one loop."""

from __future__ import annotations

import pytest

from trueloop.doctor.model.findings import Finding, Move
from trueloop.doctor.rules.schedules.tl604_plateau_watches_wrong_way import direction
from trueloop.doctor.static import check_text

PROGRAM = """
import argparse
import torch
from torch import nn
from torch.optim import lr_scheduler as L
from torch.utils.data import DataLoader
parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=90)
parser.add_argument("--gamma", type=float, default=0.1)
parser.add_argument("--accumulate", type=int, default=4)
parser.add_argument("--start-epoch", type=int, default=0)
args = parser.parse_args()
model = nn.Linear(4, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(load(), batch_size=8, shuffle=True)
scheduler = {made}
for epoch in range({epochs}):
    {head}
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {batch}
    {epoch}
"""


def findings(
    made: str, *, epochs: str = "args.epochs", head: str = "", batch: str = "", epoch: str = ""
) -> list[Finding]:
    places = {"head": head or "pass", "batch": batch or "pass", "epoch": epoch or "pass"}
    text = PROGRAM.format(made=made, epochs=epochs, **places)
    found = check_text(text, "<text>", strict=True).findings
    return [each for each in found if each.code.startswith("TL6")]


def codes(made: str, **places: str) -> list[str]:
    return [each.code for each in findings(made, **places)]


TICK = "scheduler.step()"


WARM_UP = """
import torch
from torch import nn
from {library} import Warm
class Ramp(Warm):
    def __init__(self, optimizer, epochs, after=None):
        super(Ramp, self).__init__(optimizer, epochs, after)
net = nn.Linear(4, 1)
optimizer = torch.optim.SGD(net.parameters(), 0.1)
decay = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 10)
{made}
for epoch in range(10):
    for x, y in torch.load("batches.pt"):
        optimizer.zero_grad()
        nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()
    {tick}
"""


@pytest.mark.parametrize(
    ("made", "tick", "expected"),
    [
        ("ramp = Ramp(optimizer, 2, after=decay)", "ramp.step()", []),
        ("ramp = Ramp(optimizer, 2, decay)", "ramp.step()", []),
        ("ramp = Ramp(optimizer, 2)", "ramp.step()", ["TL606"]),
    ],
)
def test_a_schedule_inside_one_of_an_unread_library(
    made: str, tick: str, expected: list[str]
) -> None:
    text = WARM_UP.format(library="warm_up", made=made, tick=tick)
    found = check_text(text, "<text>", strict=True).findings
    assert [each.code for each in found] == expected


def test_a_schedule_that_torch_does_not_have() -> None:
    assert codes("L.CosineAnnealingLR(optimizer, 90)", head=TICK) == ["TL601"]
    assert codes("L.CosineAnnealingWithRestartsLR(optimizer, 90)", head=TICK) == []


@pytest.mark.parametrize(
    ("made", "places", "expected"),
    [
        ("L.StepLR(optimizer, 30)", {"epoch": TICK}, []),
        ("L.StepLR(optimizer, 30)", {"head": TICK}, ["TL601"]),
        ("L.StepLR(optimizer, 30)", {"head": "if epoch > 0: scheduler.step()"}, []),
        ("L.StepLR(optimizer, 30)", {"head": "scheduler.step(epoch)"}, []),
        ("L.StepLR(optimizer, 30)", {}, ["TL606"]),
        ("L.StepLR(optimizer, 30)", {"batch": TICK, "epoch": TICK}, ["TL608"]),
        ("L.StepLR(optimizer, 30)", {"batch": TICK}, ["TL602"]),
        ("L.StepLR(optimizer, 30, gamma=args.gamma)", {"batch": TICK}, ["TL602"]),
        ("L.StepLR(optimizer, 30, gamma=gamma())", {"batch": TICK}, []),
        ("L.StepLR(optimizer, 30 * len(loader))", {"batch": TICK}, []),
        ("L.StepLR(optimizer, 1000)", {"batch": TICK}, []),
        ("L.ExponentialLR(optimizer, 0.9)", {"batch": TICK}, ["TL602"]),
        ("L.ExponentialLR(optimizer, 0.9999)", {"batch": TICK}, []),
        ("L.LambdaLR(optimizer, lambda e: 0.95**e)", {"batch": TICK}, ["TL602"]),
        ("L.LambdaLR(optimizer, lambda e: 0.9999**e)", {"batch": TICK}, []),
        ("L.LambdaLR(optimizer, lambda e: 0.95**args.power)", {"batch": TICK}, []),
        ("L.LambdaLR(optimizer, lambda e: 0.95**start)", {"batch": TICK}, []),
        ("L.MultiStepLR(optimizer, [30, 60])", {"batch": TICK}, ["TL602"]),
        ("L.MultiStepLR(optimizer, [3000, 6000])", {"batch": TICK}, []),
        ("L.CosineAnnealingLR(optimizer, args.epochs)", {"epoch": TICK}, []),
        ("L.CosineAnnealingLR(optimizer, args.epochs)", {"batch": TICK}, ["TL602"]),
        ("L.CosineAnnealingLR(optimizer, len(loader))", {"batch": TICK}, ["TL605"]),
        ("L.CosineAnnealingLR(optimizer, len(loader))", {"epoch": TICK}, ["TL603"]),
        ("L.CosineAnnealingLR(optimizer, args.epochs * len(loader))", {"batch": TICK}, []),
        ("L.CosineAnnealingLR(optimizer, args.epochs * len(loader))", {"epoch": TICK}, ["TL603"]),
        ("L.CosineAnnealingWarmRestarts(optimizer, 10)", {"batch": TICK}, []),
        (
            "L.CosineAnnealingWarmRestarts(optimizer, 10)",
            {"batch": "scheduler.step(epoch + i / len(loader))"},
            [],
        ),
        ("L.OneCycleLR(optimizer, 0.1, total_steps=args.epochs)", {"epoch": TICK}, []),
        (
            "L.OneCycleLR(optimizer, 0.1, epochs=args.epochs, steps_per_epoch=len(loader))",
            {"epoch": TICK},
            ["TL603"],
        ),
        (
            "L.OneCycleLR(optimizer, 0.1, epochs=args.epochs, steps_per_epoch=len(loader))",
            {"batch": TICK},
            [],
        ),
        ("L.OneCycleLR(optimizer, 0.1, 1000)", {"batch": "if i % 7 == 3: scheduler.step()"}, []),
        ("L.LinearLR(optimizer, 0.1, total_iters=5)", {"batch": TICK}, []),
        ("L.ReduceLROnPlateau(optimizer)", {"epoch": "scheduler.step(loss.item())"}, []),
        ("L.ReduceLROnPlateau(optimizer, args.mode)", {"epoch": "scheduler.step(val_acc)"}, []),
        ("L.ReduceLROnPlateau(optimizer, 'max')", {"epoch": "scheduler.step(val_acc)"}, []),
        ("L.ReduceLROnPlateau(optimizer)", {"epoch": "scheduler.step(val_acc)"}, ["TL604"]),
    ],
)
def test_clocks(made: str, places: dict[str, str], expected: list[str]) -> None:
    assert codes(made, **places) == expected


@pytest.mark.parametrize(
    ("made", "epochs", "expected"),
    [
        ("L.CosineAnnealingLR(optimizer, T_max=50)", "50", []),
        ("L.CosineAnnealingLR(optimizer, T_max=50)", "1, 51", []),
        ("L.CosineAnnealingLR(optimizer, T_max=45)", "50", []),
        ("L.CosineAnnealingLR(optimizer, T_max=50)", "args.start_epoch, args.start_epoch + 50", []),
        ("L.CosineAnnealingLR(optimizer, T_max=25)", "50", ["TL605"]),
        ("L.CosineAnnealingLR(optimizer, T_max=50 // 2)", "50", []),
        ("L.CosineAnnealingLR(optimizer, T_max=100)", "50", ["TL605"]),
        ("L.CosineAnnealingLR(optimizer, T_max=100)", "2", []),
        ("L.CosineAnnealingLR(optimizer, T_max=100)", "args.epochs", []),
        ("L.CosineAnnealingLR(optimizer, T_max=args.epochs)", "args.start_epoch, args.epochs", []),
        ("L.PolynomialLR(optimizer, total_iters=20)", "50", ["TL605"]),
        ("L.LinearLR(optimizer, 1.0, 0.1, total_iters=20)", "50", ["TL605"]),
        ("L.LinearLR(optimizer, 0.1, 1.0, total_iters=20)", "50", []),
        ("L.OneCycleLR(optimizer, 0.1, total_steps=51)", "50", []),
        (
            "L.SequentialLR(optimizer, [L.LinearLR(optimizer, total_iters=5),"
            " L.CosineAnnealingLR(optimizer, T_max=args.epochs - 5)], milestones=[5])",
            "args.epochs",
            [],
        ),
        (
            "L.SequentialLR(optimizer, [L.LinearLR(optimizer, total_iters=5),"
            " L.CosineAnnealingLR(optimizer, T_max=20)], milestones=[5])",
            "100",
            ["TL605"],
        ),
    ],
)
def test_lengths(made: str, epochs: str, expected: list[str]) -> None:
    assert codes(made, epochs=epochs, epoch=TICK) == expected


def test_a_run_that_may_end_early_is_not_too_long() -> None:
    early = "scheduler.step()\n    if loss.item() < 0.1: break"
    made = "L.CosineAnnealingLR(optimizer, T_max=20)"
    assert codes(made, epochs="1000", epoch=early) == []


@pytest.mark.parametrize(
    ("made", "severity"),
    [
        ("L.ExponentialLR(optimizer, 0.9)", "warning"),
        ("L.StepLR(optimizer, 1)", "warning"),
        ("L.StepLR(optimizer, 30)", "advice"),
        ("L.StepLR(optimizer, args.decay_every)", "advice"),
        ("L.MultiStepLR(optimizer, [2, 4])", "warning"),
        ("L.MultiStepLR(optimizer, [60, 120])", "advice"),
        ("L.MultiStepLR(optimizer, args.milestones)", "advice"),
    ],
)
def test_a_learning_rate_that_lasts_is_not_skipped(made: str, severity: str) -> None:
    (found,) = findings(made, head=TICK)
    assert (found.code, found.severity) == ("TL601", severity)
    assert ("first learning rate is skipped" in found.message) is (severity == "warning")


@pytest.mark.parametrize(
    ("length", "severity"), [("49", "warning"), ("50", "advice"), ("rounds()", "warning")]
)
def test_one_step_of_a_long_cosine_is_little(length: str, severity: str) -> None:
    (found,) = findings(f"L.CosineAnnealingLR(optimizer, {length})", head=TICK)
    assert (found.code, found.severity) == ("TL601", severity)
    assert "first learning rate is skipped" in found.message


def test_tick_is_moved_behind_the_loop() -> None:
    (found,) = findings("L.StepLR(optimizer, 30)", head=TICK)
    (move,) = found.remedies
    assert isinstance(move, Move)
    assert move.what.line == found.place.line
    assert move.target.line == found.place.line + 1
    assert move.where == "after"


ACCUMULATED = """
import torch
from torch import nn
from torch.optim.lr_scheduler import LinearLR
from torch.utils.data import DataLoader
model = nn.Linear(4, 2)
optimizer = torch.optim.AdamW(model.parameters())
loader = DataLoader(load(), batch_size=8, shuffle=True)
scheduler = LinearLR(optimizer, 1.0, 0.0, total_iters={total})
for epoch in range(args.epochs):
    for i, (x, y) in enumerate(loader):
        (nn.functional.cross_entropy(model(x), y) / args.n).backward()
        if (i + 1) % args.n == 0:
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("total", "expected"),
    [
        ("len(loader) * args.epochs", ["TL605"]),
        ("len(loader) // args.n", ["TL605"]),
        ("len(loader) // args.n * args.epochs", []),
        ("len(loader) * args.epochs // args.n", []),
        ("args.total", []),
    ],
)
def test_length_under_accumulation(total: str, expected: list[str]) -> None:
    found = check_text(ACCUMULATED.format(total=total), "<text>", strict=True).findings
    assert [each.code for each in found if each.code.startswith("TL6")] == expected


@pytest.mark.parametrize(
    ("metric", "expected"),
    [
        ("val_loss", -1),
        ("valAcc", 1),
        ("-val_loss", 1),
        ("1 - accuracy", -1),
        ("100.0 - top1.avg", -1),
        ("losses.avg", -1),
        ("scores['mIoU']", 1),
        ("metrics['val/f1_score']", 1),
        ("np.mean(val_losses)", -1),
        ("total_loss / len(loader)", -1),
        ("correct / total", 1),
        ("history['val_acc'][-1]", 1),
        ("results.get('mAP')", 1),
        ("dice_loss", -1),
        ("1 / perplexity", 1),
        ("-1 * val_loss", 1),
        ("total_loss / len(loader) * -1.0", 1),
        ("100 * val_acc", 1),
        ("neg_accuracy", 0),
        ("score", 0),
        ("metric", 0),
        ("loss - acc", 0),
        ("val_acc if args.acc else val_loss", 0),
        ("evaluate(model, loader)", 0),
        ("", 0),
    ],
)
def test_direction_of_a_metric(metric: str, expected: int) -> None:
    assert direction(metric) == expected
