"""What the guide says that a checkpoint holds is what one holds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import trueloop
from trueloop.checkpoint import Checkpoints, contents, load_checkpoint

GUIDE = Path(__file__).parents[2] / "docs" / "checkpoints.md"
NESTED = ("step", "feed", "rng")


def told() -> set[str]:
    """The keys in the guide's table."""
    table = GUIDE.read_text("utf-8").split("**What a checkpoint contains**")[1].split("\n\n")[1]
    return {
        key
        for row in table.splitlines()[2:]
        for key in re.findall(r"`([\w.]+)`", row.split("|")[1])
    }


def keys(state: dict[str, object]) -> set[str]:
    found = set(state) - set(NESTED)
    for name in NESTED:
        inner = state[name]
        assert isinstance(inner, dict)
        found |= {f"{name}.{key}" for key in inner}
    return found


@pytest.mark.parametrize("loader", [False, True])
def test_the_guide_lists_what_a_checkpoint_holds(tmp_path: Path, loader: bool) -> None:
    data = (torch.rand(8, 1), torch.rand(8, 1))
    source = DataLoader(TensorDataset(*data), 2) if loader else data
    feed = trueloop.Feed(source) if loader else trueloop.Feed(source, 2)
    model = nn.Linear(1, 1)
    step = trueloop.Step(
        model, trueloop.optimizers.sgd(model, 0.1), trueloop.supervised(nn.MSELoss())
    )
    saved = Checkpoints(tmp_path, keep_best=None, state={"counter": {"n": 0}})
    trueloop.fit(
        step, feed, epochs=1, checkpoints=saved, early_stop=trueloop.EarlyStopping("train_loss")
    )
    found = keys(load_checkpoint(tmp_path))
    if loader:
        rest = {
            "ranks", "step.agreed", "step.train_weights", "step.outliers", "step.compiled",
            "step.split", "step.average", "feed.others", "feed.shards", "feed.window",
        }  # fmt: skip
        rest |= set() if torch.cuda.is_available() else {"rng.cuda"}
        assert told() - rest == found
    assert found <= told()


def test_what_is_checked_is_what_is_told() -> None:
    declared = set(contents.STATE | contents.OF_FIT) - set(NESTED)
    for name in NESTED:
        declared |= {f"{name}.{key}" for key in contents.STATE[name]}
    assert declared == told()
