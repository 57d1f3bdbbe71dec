"""benchmarks/doctor_unknown_code.py on two programs: what is replaced, and which alarms count."""

from __future__ import annotations

from pathlib import Path

from warm_python import call_benchmark

TRAINS = """
import torch
from torch import nn


def update(model, optimizer, x):
    optimizer.zero_grad()
    model(x).square().mean().backward()
    optimizer.step()


model = nn.Linear(3, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    x = torch.randn(8, 3)
    update(model, optimizer, x)
"""
WORKS_ON_GLOBALS = TRAINS.replace("update(model, optimizer, x)", "update()").replace(
    "    optimizer.step()\n\n", "    apply()\n\n\ndef apply():\n    optimizer.step()\n\n"
)


def test_changes_and_alarms(tmp_path: Path) -> None:
    (tmp_path / "trains.py").write_text(TRAINS)
    (tmp_path / "globals.py").write_text(WORKS_ON_GLOBALS)
    status, out = call_benchmark(
        "doctor_unknown_code", "--folder", str(tmp_path), "--jobs", "1", "--show", timeout=120
    )
    assert status == 0, out
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines() if line.strip()}
    assert rows["call"] == ["6", "0"]
    assert rows["definition"] == ["3", "1"]
    assert "alarms by rule: TL106 1" in out
    assert "globals.py: definition `apply`: line 8 TL106" in out
