"""Bundles that nobody has recorded: refused in one line, with nothing run that could do harm."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from crafted import Parts, crafted, record, recorded, written
from hypothesis import HealthCheck, given, settings, strategies as st
from torch import nn

from trueloop.cli import main
from trueloop.doctor.runtime import bundle, bundle_format, op_runner
from trueloop.errors import ConfigError


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Parts]:
    return recorded(tmp_path_factory.mktemp("recorded"))


@pytest.fixture
def linear(bundles: dict[str, Parts]) -> Parts:
    return bundles["linear"].copy()


def replays(folder: Path, capfd: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """The exit status, and what stands on stderr."""
    status = main(["replay", str(folder)])
    return status, capfd.readouterr().err


def refused(parts: Parts, folder: Path, capfd: pytest.CaptureFixture[str]) -> str:
    status, said = replays(parts.write(folder / "bundle"), capfd)
    assert status == 2
    assert said.startswith("trueloop: error: "), said
    assert said.count("\n") == 1, said
    assert len(said) < 1000, said
    return said


def outcome(folder: Path) -> tuple[int, str]:
    """The exit status, and the line that is printed with 2."""
    try:
        return (0 if bundle.replay(str(folder)).same else 1), ""
    except ConfigError as error:
        return 2, str(error)


def contents(folder: Path) -> dict[str, bytes | None]:
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None
        for path in sorted(folder.rglob("*"))
    }


# ---------------------------------------------------------------------- as it should be


KINDS = ("linear", "conv", "norms", "embedding", "bags", "lstm", "gru", "attention", "indices",
         "algebra", "pictures", "losses")  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_what_was_recorded_is_replayed(
    kind: str, bundles: dict[str, Parts], tmp_path: Path
) -> None:
    parts = bundles[kind].copy()
    last = parts.tape["operations"][-1]
    last["bad"] = "" if last["bad"] == "NaN" else last["bad"]  # made up, to have a bundle at all
    replayed = bundle.replay(str(parts.write(tmp_path / "bundle")))
    assert replayed.same
    assert replayed.count > 0
    assert set(bundles) == set(KINDS)


def test_values_are_as_they_were(tmp_path: Path) -> None:
    """Strides, complex numbers, numbers of bool, and what is NaN from the beginning."""
    x = torch.randn(3, 4).t()
    wave = torch.randn(3, dtype=torch.complex64)
    mask = torch.tensor([True, False, True])
    broken = torch.tensor([1.0, float("nan"), 2.0])

    def compute() -> Any:
        return (x + 1).sum() + (wave * wave.conj()).real[mask].sum() + (broken * mask).sum()

    held = bundle_format.read(str(written(record(compute), tmp_path))).tensors
    assert any(each.equal(x) and each.stride() == x.stride() for each in held.values())
    assert any(each.dtype == torch.complex64 and each.equal(wave) for each in held.values())
    assert any(each.dtype == torch.bool and each.equal(mask) for each in held.values())


def test_an_operation_that_a_bundle_may_not_hold_is_not_written(tmp_path: Path) -> None:
    tape = record(lambda: torch.ones(3).resize_(5))
    tape.operations[-1].bad = "NaN"
    with pytest.raises(AssertionError, match="resize_"):
        written(tape, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_autograds_zeros_without_memory_can_be_recorded() -> None:
    """Asked whether they are finite, they crash the interpreter."""
    zeros = torch._efficientzerotensor(3)
    assert zeros._is_zerotensor()
    tape = record(lambda: torch._efficientzerotensor(3))
    assert {each.bad for each in tape.operations} == {""}


def test_a_bundle_that_cannot_be_written_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = record(nn.Linear(2, 1), torch.ones(1, 2))

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(bundle, "_generators", full)
    with pytest.raises(OSError, match="No space"):
        written(tape, tmp_path)
    assert list(tmp_path.iterdir()) == []


# ---------------------------------------------------------------------- 2,000 of them


def test_two_thousand_crafted_bundles(
    bundles: dict[str, Parts], tmp_path: Path, capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Replayed, not reproduced or refused in one line, in this process, which goes on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(op_runner, "memory", lambda: 2**30)
    count = {0: 0, 1: 0, 2: 0}

    @settings(
        max_examples=2000, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.integers(0, 2**48))
    def check(seed: int) -> None:
        folder = crafted(random.Random(seed), bundles, tmp_path / "bundle")
        before = contents(folder)
        status, line = outcome(folder)
        assert line.isprintable()
        assert len(line) < 1000
        count[status] += 1
        assert contents(folder) == before
        _remove(folder)

    check()
    assert sum(count.values()) == 2000
    assert min(count.values()) > 20, count
    assert list(tmp_path.iterdir()) == []


def _remove(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            path.rmdir()
        else:
            path.unlink()
    folder.rmdir()
