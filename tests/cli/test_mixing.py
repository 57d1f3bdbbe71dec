"""`trueloop train --mixup`, `--cutmix` and `--unfreeze`: what trains, what is refused, and that a
resumed run is the same one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.checkpoint import load_checkpoint
from trueloop.cli._session import open_session
from trueloop.cli.options import settings_from
from trueloop.run import Run

Command = Callable[..., Any]
TASK = """
import torch
from torch import nn

import trueloop
from trueloop.tasks import Recipe, Splits


class Photos(trueloop.Task):
    kind = "multiclass"
    classes = ["a", "b", "c"]
    recipe = Recipe(epochs=2, batch_size=8, schedule="none")

    def splits(self):
        generator = torch.Generator().manual_seed(1)
        x = torch.randint(0, 256, (32, 1, 4, 4), dtype=torch.uint8, generator=generator)
        data = x, torch.arange(32) % 3
        return Splits(train=data, val=data)

    def model(self):
        return Net()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone = nn.Linear(16, 8)
        self.head = nn.Linear(8, 3)

    def forward(self, images):
        return self.head(self.backbone(images.float().flatten(1) / 255))


class Yes(Photos):
    kind = "binary"
    classes = ["no", "yes"]

    def splits(self):
        x = torch.linspace(-1, 1, 16)[:, None]
        data = x, (x[:, 0] > 0).long()
        return Splits(train=data, val=data)

    def model(self):
        return nn.Sequential(nn.Linear(1, 1), nn.Flatten(0))
"""


@pytest.fixture(autouse=True)
def _task() -> None:
    Path("photos.py").write_text(TASK)


def batches(task: str, *words: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    return list(open_session(settings_from(task, list(words))).train.epoch(0))


def test_training_batches_are_mixed_and_validation_is_not() -> None:
    """Against the arithmetic: mixup keeps the mean of neighbours, CutMix takes pixels from them."""
    plain = batches("photos.py:Photos")
    for (x, y), (own, label) in zip(
        batches("photos.py:Photos", "--mixup", "1"), plain, strict=True
    ):
        hot = torch.nn.functional.one_hot(label, 3).float()
        share = (y - hot.roll(1, 0))[torch.arange(8), label]
        apart = label != label.roll(1, 0)  # else the target does not show the share
        mean = share[:, None, None, None] * own + (1 - share)[:, None, None, None] * own.roll(1, 0)
        torch.testing.assert_close(x[apart], mean[apart], atol=1e-3, rtol=0)
        torch.testing.assert_close(y.sum(1), torch.ones(8))
    for (x, _), (own, _) in zip(batches("photos.py:Photos", "--cutmix", "1"), plain, strict=True):
        assert ((x == own) | (x == own.roll(1, 0).float())).all()
        assert (x != own).any()
    for _, y in batches("photos.py:Yes", "--mixup", "1"):
        assert y.shape == (8,)
        assert ((y >= 0) & (y <= 1)).all()
    session = open_session(settings_from("photos.py:Photos", ["--mixup", "1", "--cutmix", "1"]))
    assert all(labels.dtype == torch.int64 for _, labels in session.val.epoch(0))


def test_a_resumed_run_mixes_and_unfreezes_as_one_that_was_not_stopped(command: Command) -> None:
    words = ("photos.py:Photos", "--mixup", "0.4", "--cutmix", "1", "--quiet", "--unfreeze",
             "backbone=2 epochs")  # fmt: skip
    assert command("train", *words, "--epochs", "3", "--run", "whole").status == 0
    assert command("train", *words, "--epochs", "1", "--run", "parts").status == 0
    first = load_checkpoint(Run("parts").checkpoints, which="last")["model"]
    assert command("resume", "parts", "--epochs", "3", "--quiet").status == 0
    one, two = (load_checkpoint(Run(name).checkpoints, which="last") for name in ("whole", "parts"))
    assert one["model"].keys() == two["model"].keys()
    for name, weight in one["model"].items():
        assert torch.equal(weight, two["model"][name]), name
    torch.manual_seed(0)
    session = open_session(settings_from("photos.py:Photos", []))
    start = session.model.state_dict()
    assert torch.equal(first["backbone.weight"], start["backbone.weight"])
    assert not torch.equal(first["head.weight"], start["head.weight"])
    assert not torch.equal(two["model"]["backbone.weight"], start["backbone.weight"])
    assert Run("whole").config["unfreeze"] == ["backbone=2 epochs"]


def test_a_ready_made_task_trains_with_mixup(command: Command) -> None:
    assert command("train", "spiral", "--epochs", "1", "--mixup", "0.2", "--run", "r").status == 0
    assert Run("r").findings == []


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("spiral --mixup 0", "--mixup must be above 0"),
        ("spiral --cutmix 1", "--cutmix 1 cannot mix these data (cutmix takes images of shape"),
        ("LINE --mixup 0.2", "--mixup 0.2 mixes the classes of samples, and this task is a regre"),
        ("table --data t.csv --target y --mixup 1", "--mixup 1 cannot mix these data"),
        ("text --data t.txt --mixup 1", "--mixup 1 mixes the classes of samples"),
        ("spiral --unfreeze 0=5%", "this model starts from random weights: leave it out"),
        ("text --data t.txt --unfreeze blocks=5%", "this model starts from random weights"),
        ("photos.py:Photos --unfreeze back=5%", "no such module: did you mean 'backbone'?"),
        ("photos.py:Photos --unfreeze backbone", "write --unfreeze \"backbone=2 epochs\""),
        ("photos.py:Photos --unfreeze head=soon", "--unfreeze head"),
        ("photos.py:Photos --unfreeze head=5%,head=6%", "names head twice: write it once"),
    ],
)  # fmt: skip
def test_mistakes(command: Command, line: str, words: str, expected: str) -> None:
    Path("t.csv").write_text("\n".join(["x,y", *(f"{k},{'ab'[k % 2]}" for k in range(200))]))
    Path("t.txt").write_text("some text of a few words. " * 400)
    said = command("train", *words.replace("LINE", line).split(), "--run", "new")
    assert said.status == 2
    assert expected in said.complaint
    assert not Path("new").exists()
