"""docs/scale.md and benchmarks/scale_arithmetic.py, beside 2 and 3 real ranks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from documents import is_shown, shown

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import goodput_simulator
import scale_arithmetic as paper
import scale_checks as checks

from on_ranks import on_ranks

linux = pytest.mark.skipif(sys.platform != "linux", reason="counts by Linux's /proc and TCP_INFO")


def test_the_page_shows_the_arithmetic() -> None:
    found = list(paper.report(paper.parsed([])).values())
    blocks = shown("tests/test_scale.py::test_the_page_shows_the_arithmetic")
    assert [block.rstrip("\n") for block in blocks] == found
    assert all(is_shown(block, text) for block, text in zip(blocks, found, strict=True))


def test_the_page_shows_what_failures_cost(capsys: pytest.CaptureFixture[str]) -> None:
    assert goodput_simulator.main([]) == 0
    printed = capsys.readouterr().out
    [block] = shown("tests/test_scale.py::test_the_page_shows_what_failures_cost")
    assert block == printed
    assert is_shown(block, printed)


def test_hsdp_groups_divide_the_ranks() -> None:
    assert [paper.host_group(ranks, 8) for ranks in (10, 1_000, 10_000, 7, 1)] == [5, 8, 8, 7, 1]


def test_the_share_of_copies_is_between_ddp_and_fsdp() -> None:
    def sent(strategy: str, group: int) -> paper.Sent:
        return paper.sent(strategy, 1000, 16, group, paper.WHOLE)

    assert sent("hsdp", 16) == paper.Sent(sent("fsdp", 16).total, 0.0)
    # Copies of one rank each: nothing to gather, and all gradients go between them.
    assert sent("hsdp", 1) == paper.Sent(0.0, sent("ddp", 16).total)


@linux
@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_ranks_send_the_bytes_of_the_formula(name: str) -> None:
    accumulate = 3
    [(_, strategy, parallel, group, of)] = [s for s in checks.strategies(2) if s[0] == name]
    width = checks.WIDTH // 4
    wanted = checks.of_gloo(strategy, 2, group, of, accumulate) / 16
    for counted in on_ranks(2, checks.sent_per_update, parallel, accumulate, width):
        assert counted == pytest.approx(wanted, rel=0.02)


@linux
@pytest.mark.parametrize("name", ["ddp", "fsdp"])
def test_ranks_hold_the_bytes_of_the_formula(name: str) -> None:
    wanted = paper.memory(name, checks.PARAMETERS, checks.BLOCKS, 2, 2, paper.WHOLE).device
    for counted in on_ranks(2, checks.held, name):
        assert counted == pytest.approx(wanted, rel=0.15)


@linux
def test_step_sends_a_small_vector_beside_what_plain_ddp_sends() -> None:
    """32 bytes, and gloo's own for a message."""
    assert paper.VECTOR <= checks.own_bytes(2) < 1000


def test_a_checkpoint_grows_with_the_ranks_as_on_paper(tmp_path: Path) -> None:
    tensors, files = 3 * checks.BLOCKS, {}
    for ranks in (2, 3):
        for parallel in ("ddp", "fsdp"):
            folder = str(tmp_path / f"{parallel}{ranks}")
            files[parallel, ranks] = on_ranks(ranks, checks.saved, parallel, folder)[0]

    def more(parallel: str, name: str) -> int:
        """By how much the files so named grow with one rank more."""
        sizes = [
            sum(size for file, size in files[parallel, ranks].items() if file.endswith(name))
            for ranks in (2, 3)
        ]
        return sizes[1] - sizes[0]

    whole = paper.checkpoint_bytes(checks.PARAMETERS, paper.WHOLE)
    for found in files.values():
        assert sum(found.values()) == pytest.approx(whole, rel=0.01)
    assert more("ddp", "manifest.json") == pytest.approx(paper.PER_FILE, rel=0.1)
    assert more("ddp", ".distcp") == pytest.approx(paper.PER_RANK, rel=0.1)
    assert more("fsdp", ".metadata") == pytest.approx(paper.INDEX_PER_SHARD * tensors, rel=0.1)
    frames = more("fsdp", ".distcp") - more("ddp", ".distcp")
    assert frames == pytest.approx(paper.PER_SHARD * tensors, rel=0.1)
    assert abs(more("fsdp", "state.pt")) < 200, "what all ranks have in common is there once"


def test_options_are_read() -> None:
    words: list[Any] = ["--parameters", "1e6", "--ranks", "4", "--accumulate", "2"]
    report = paper.report(paper.parsed(words))
    assert report["sent"] != paper.report(paper.parsed(words[:-2]))["sent"]
    assert len(report["checkpoint"].splitlines()) == 4
