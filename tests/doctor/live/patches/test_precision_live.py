"""Accumulation and scalers in programs that run: rhythms, tails, rounding."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.rules.catalogue import BY_CODE
from trueloop.doctor.rules.loading import load

ACCUMULATION = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.randn({samples}, 3), torch.randn({samples}, 1))
loader = torch.utils.data.DataLoader(data, batch_size=4)
count = 0
for epoch in range(3):
    {first}
    for i, (x, y) in enumerate(loader):
        count += 1
        loss = nn.functional.mse_loss(model(x), y) {divided}
        loss.backward()
        if {condition}:
            optimizer.step()
            optimizer.zero_grad()
"""
HALF = """
import torch
from torch import nn

torch.manual_seed(0)
model = nn.Linear(8, 4).{dtype}()
optimizer = torch.optim.SGD(model.parameters(), lr={lr})
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: {factor})
for step in range(12):
    optimizer.zero_grad()
    model(torch.randn(16, 8).{dtype}()).float().square().mean().backward()
    optimizer.step()
    schedule.step()
"""


def found(code: str, text: str, folder: Path) -> list[Finding]:
    path = folder / "program.py"
    path.write_text(text, encoding="utf-8")
    watcher = Watcher([load(BY_CODE[code])])
    watcher.start()
    try:
        runpy.run_path(str(path), run_name="__main__")
    finally:
        watcher.stop()
    findings = watcher.findings()
    assert watcher.hub.errors == []
    return findings


def accumulation(
    samples: int = 40,
    first: str = "pass",
    divided: str = "/ 4",
    condition: str = "(i + 1) % 4 == 0",
) -> str:
    return ACCUMULATION.format(samples=samples, first=first, divided=divided, condition=condition)


@pytest.mark.parametrize(
    ("text", "fate"),
    [
        (accumulation(), "added to the next update"),
        (accumulation(first="optimizer.zero_grad()"), "erased"),
        (accumulation(samples=48), ""),
        (accumulation(condition="count % 4 == 0"), ""),
        (accumulation(condition="(i + 1) % 4 == 0 or i + 1 == len(loader)"), ""),
        (accumulation(condition="True", divided=""), ""),
    ],
    ids=["carried", "erased", "even", "across-epochs", "last-steps", "no-window"],
)
def test_tails(text: str, fate: str, tmp_path: Path) -> None:
    findings = found("TL506", text, tmp_path)
    assert [finding.place.line for finding in findings] == ([18] if fate else [])
    if fate:
        assert "10 batches cannot be divided into updates of 4 micro-batches" in findings[0].message
        assert f"the last 2 are {fate}" in findings[0].message


def test_sums_name_the_size_of_the_window_that_was_seen(tmp_path: Path) -> None:
    (finding,) = found("TL505", accumulation(divided=""), tmp_path)
    assert finding.place.line == 16
    assert "not divided by `4`" in finding.message
    assert found("TL505", accumulation(), tmp_path) == []


def test_a_backward_for_each_task_is_a_sum_on_purpose(tmp_path: Path) -> None:
    text = """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    optimizer.zero_grad()
    for task in range(4):
        nn.functional.mse_loss(model(torch.randn(8, 3)), torch.zeros(8, 1)).backward()
    optimizer.step()
"""
    assert found("TL505", text, tmp_path) == []
    assert found("TL508", text, tmp_path) == []


@pytest.mark.parametrize(
    ("dtype", "lr", "factor", "lost"),
    [
        ("bfloat16", "1e-4", "1.0", True),
        ("half", "1e-5", "1.0", True),
        ("float", "1e-6", "1.0", False),
        ("bfloat16", "0.5", "1.0", False),
        ("bfloat16", "1e-4", "(step + 1) / 1000", False),
        ("bfloat16", "1e-4", "0.0", False),
    ],
    ids=["bfloat16", "float16", "float32", "large", "warm-up", "zero"],
)
def test_rounding(dtype: str, lr: str, factor: str, lost: bool, tmp_path: Path) -> None:
    findings = found("TL507", HALF.format(dtype=dtype, lr=lr, factor=factor), tmp_path)
    assert [finding.place.line for finding in findings] == ([12] if lost else [])


def test_a_scaler_that_is_never_updated_is_found_before_torch_raises(tmp_path: Path) -> None:
    text = """
import torch
from torch import nn

model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu")
try:
    for step in range(3):
        optimizer.zero_grad()
        scaler.scale(model(torch.randn(8, 3)).square().mean()).backward()
        scaler.step(optimizer)
except RuntimeError as error:
    assert "update" in str(error)
"""
    (finding,) = found("TL502", text, tmp_path)
    assert finding.place.line == 12


def test_an_update_on_a_condition_is_somebodys_thought(tmp_path: Path) -> None:
    text = """
import torch
from torch import nn

amp = torch.cuda.is_available()
model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
scaler = torch.amp.GradScaler("cpu", enabled=amp)
for step in range(3):
    optimizer.zero_grad()
    scaler.scale(model(torch.randn(8, 3)).square().mean()).backward()
    scaler.step(optimizer)
    if amp:
        scaler.update()
"""
    assert found("TL502", text, tmp_path) == []
