"""What the README shows runs as it stands there."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from trueloop.cli import main

README = (Path(__file__).parent.parent / "README.md").read_text("utf-8")


def test_the_loop_and_fit_of_the_readme_run() -> None:
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) == 2
    torch.manual_seed(0)
    targets = torch.randint(0, 3, (200,))
    inputs = torch.eye(3)[targets] + 0.3 * torch.randn(200, 3)
    names: dict[str, Any] = {
        "inputs": inputs[:150],
        "targets": targets[:150],
        "val_inputs": inputs[150:],
        "val_targets": targets[150:],
        "model": nn.Sequential(nn.Linear(3, 32), nn.ReLU(), nn.Linear(32, 3)),
    }
    exec(blocks[0], names)
    step = names["step"]
    assert step.updates == 20 * 1  # three batches: one short window per epoch
    assert step.epoch == 20
    assert names["scores"]["loss"] < 1.1
    names["step"] = names["trueloop"].Step(
        names["model"],
        names["optimizers"].adamw(names["model"], 1e-2),
        names["loss_fn"],
        schedule=names["schedules"].cosine(),
    )
    exec(blocks[1], names)
    assert names["history"].best < 0.3


def test_every_verb_of_the_readme_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    verbs = set(re.findall(r"^trueloop ([\w-]+)", README, re.MULTILINE))
    assert {"train", "evaluate", "predict", "runs", "report", "verify-resume"} <= verbs
    for verb in verbs:
        assert main([verb, "--help"]) == 0
        assert "example" in capsys.readouterr().out
