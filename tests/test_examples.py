"""The twins run as they stand, end with the same weights, and leave the doctor nothing to find."""

from __future__ import annotations

import functools
import io
import os
import re
import runpy
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import torch
from torch import nn
from torch.optim.swa_utils import AveragedModel

from trueloop.cli import main
from warm_python import BENCHMARKS, call

EXAMPLES = Path(__file__).parent.parent / "examples"
TWINS = sorted(path.parent.name for path in EXAMPLES.glob("*/torch_loop.py"))
TOLERANCE = {"sequences": 1e-5}
"""Where the weights are not bitwise the same: by hand, a window's sum of losses is divided by its
tokens after the last backward; `Step` weights each micro-batch, which rounds differently."""
Splits = Iterator[tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]]


class Ran(NamedTuple):
    printed: str
    weights: dict[str, torch.Tensor]
    """Of all modules that the script has under a name of its own."""
    findings: list[str]
    updates: int


def _run(script: str) -> Ran:
    import trueloop

    # What takes time hangs on the machine.
    with (
        trueloop.watch(show=False, ignore=["TS1"]) as watched,
        redirect_stdout(io.StringIO()) as out,
    ):
        names = runpy.run_path(script, run_name="__main__")
    assert not watched.errors
    weights = {
        f"{name}.{key}": value
        for name, module in names.items()
        if isinstance(module, nn.Module) and not isinstance(module, AveragedModel)
        for key, value in module.state_dict().items()
    }
    findings = [f"{script}:{each.place} {each.code} {each.message}" for each in watched.findings]
    return Ran(out.getvalue(), weights, findings, watched.updates)


def _dealt_as_ours(self: Any, _: object, labels: torch.Tensor) -> Splits:
    from trueloop.folds import stratified_folds

    fold_of = stratified_folds(labels.numpy(), self.n_splits)
    for fold in range(self.n_splits):
        yield np.flatnonzero(fold_of != fold), np.flatnonzero(fold_of == fold)


def _both(name: str) -> tuple[Ran, Ran]:
    os.chdir(EXAMPLES / name)
    sys.path[:0] = [str(EXAMPLES / name), str(BENCHMARKS)]
    from same_batches import draw_as_feed

    with pytest.MonkeyPatch.context() as patch:
        draw_as_feed(patch)
        if name == "k_fold":  # the import takes as long as a twin
            from sklearn.model_selection import StratifiedKFold

            patch.setattr(StratifiedKFold, "split", _dealt_as_ours)
        by_hand = _run("torch_loop.py")
    return by_hand, _run("trueloop_loop.py")


@functools.cache
def both(name: str) -> tuple[Ran, Ran]:
    return call(_both, name)


@pytest.mark.parametrize("name", TWINS)
def test_twins_end_with_the_same_weights(name: str) -> None:
    by_hand, ours = both(name)
    assert ours.updates == by_hand.updates > 10
    assert ours.printed == by_hand.printed
    assert ours.weights.keys() <= by_hand.weights.keys()  # a loop may leave a layer behind
    for key, value in ours.weights.items():
        limit = TOLERANCE.get(name, 0.0)
        torch.testing.assert_close(value, by_hand.weights[key], rtol=0.0, atol=limit, msg=key)


@pytest.mark.parametrize("name", TWINS)
def test_watch_finds_nothing_in_either_twin(name: str) -> None:
    assert [finding for ran in both(name) for finding in ran.findings] == []


def test_check_finds_nothing_in_the_twins(capsys: pytest.CaptureFixture[str]) -> None:
    scripts = [str(path) for name in TWINS for path in sorted((EXAMPLES / name).glob("*.py"))]
    assert main(["check", "--no-cache", *scripts]) == 0, capsys.readouterr().out


def test_each_pair_is_in_the_read_me_and_can_be_read_at_a_glance() -> None:
    listed = re.findall(r"^\| \[(\w+)\]\(\1\)", (EXAMPLES / "README.md").read_text("utf-8"), re.M)
    assert sorted(listed) == TWINS
    for name in TWINS:
        lines = [len((EXAMPLES / name / f"{each}_loop.py").read_text("utf-8").splitlines())
                 for each in ("torch", "trueloop")]  # fmt: skip
        assert max(lines) <= 80
