"""What the README shows runs as it stands there, and its figures are those of the result files."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import torch
from torch import nn

from documents import ROOT, blocks
from trueloop.cli import main
from trueloop.doctor.rules.catalogue import ENTRIES

README = (ROOT / "README.md").read_text("utf-8")
CODES = {entry.code for entry in ENTRIES}
RESULTS = ROOT / "benchmarks" / "results"


def result(name: str) -> Any:
    return json.loads((RESULTS / f"{name}.json").read_text("utf-8"))


def test_the_loop_and_fit_of_the_readme_run(capsys: pytest.CaptureFixture[str]) -> None:
    (loop,) = [block.text for block in blocks("README.md") if block.language == "python"]
    made, own, after = loop.partition("loss_fn =")
    assert made.count("\n") <= 9
    assert (own + after).count("\n") <= 10
    torch.manual_seed(0)
    names: dict[str, Any] = {}
    exec(loop, names)  # by itself, as one who pastes it would
    printed = capsys.readouterr().out
    step, data = names["step"], (names["inputs"][1600:], names["targets"][1600:])
    assert step.updates == 20 * 7  # 25 batches: six windows of four, and a short one
    assert step.epoch == 20
    outputs = names["model"](data[0])
    loss = nn.functional.cross_entropy(outputs, data[1]).item()
    assert names["scores"]["loss"] == pytest.approx(loss, rel=1e-5)
    assert loss < 0.2
    assert f"{loss:.3f}" in printed
    names["step"] = names["trueloop"].Step(
        names["model"], torch.optim.AdamW(names["model"].parameters()), names["loss_fn"]
    )
    (fit,) = re.findall(r"`(trueloop\.fit\(.*?\))`", README)
    assert eval(fit, names).best < 0.2


def test_every_verb_of_the_readme_is_there(capsys: pytest.CaptureFixture[str]) -> None:
    verbs = set(re.findall(r"^trueloop ([\w-]+)", README, re.MULTILINE))
    assert {"train", "predict", "report", "verify-resume", "check", "watch"} <= verbs
    for verb in verbs:
        assert main([verb, "--help"]) == 0
        assert "example" in capsys.readouterr().out


def test_the_readme_is_short() -> None:
    """What is detail goes to docs."""
    assert len(README.splitlines()) <= 129
    assert len(README.split()) <= 1195


def test_the_pictures_are_small_and_have_alternative_texts() -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", README)
    assert [len(text) > 60 for text, _ in pictures] == [True, True]
    assert all((ROOT / file).stat().st_size < 100_000 for _, file in pictures)


# ------------------------------------------------------------------------------- figures


def _table() -> dict[str, list[str]]:
    """The cells of the README's table by the name of the loop, without emphasis."""
    rows = re.findall(r"^\| (.+) \|$", README, re.M)
    cells = [[cell.strip(" *`") for cell in re.sub(r"[`*]", "", row).split("|")] for row in rows]
    return {name: rest for name, *rest in cells if rest and re.match(r"[\d,.]+$", rest[0])}


def test_the_time_of_an_update_is_as_measured() -> None:
    measured = {
        row["contender"]: row["µs per update"] for row in result("side_by_side_spiral")["rows"]
    }
    shown = {name: float(cells[0].replace(",", "")) for name, cells in _table().items()}
    assert len(shown) == 10
    for name, value in shown.items():
        kept = {"Trueloop": "trueloop", "Trueloop, compile=step": "trueloop, compile=step"}
        wanted = measured[kept.get(name.replace('"', ""), name)]
        assert value == pytest.approx(wanted, abs=0.51)


def test_the_losses_after_a_resume_are_the_best_of_each_trainer() -> None:
    best: dict[str, list[int]] = {}
    for row in result("resume_vs_peers")["rows"]:
        trials = [row["trials"][kind]["repeated"] for kind in ("plain", "dropout", "augmented")]
        old = best.get(row["trainer"], [0, 0, 0])
        best[row["trainer"]] = max(old, trials)
    shown = {
        name.removesuffix("' Trainer").removesuffix("'s Trainer"): [int(cell) for cell in cells[1:]]
        for name, cells in _table().items()
        if cells[1:] != ["", "", ""]
    }
    assert shown == best


def test_the_counts_of_the_doctor_are_as_judged() -> None:
    kept = result("public_code")
    rows = [
        row
        for part in ("looked at", "held out")
        for row in kept[f"{part}: errors and warnings"]
        if row[""] in CODES
    ]
    true, noise, false = (sum(row[kind] for row in rows) for kind in ("true", "noise", "false"))
    text = " ".join(README.split())
    assert (
        f"({kept['lines'] / 1e6:.2f} million lines) {true + noise + false} errors and warnings of "
        f"`check` were judged by hand: {true} are faults, {noise} are correct but "
        f"harmless there, {false} are wrong" in text
    )


def test_the_bug_of_the_readme_was_found_in_the_repositories_that_it_names() -> None:
    found = {
        row["repository"].split("/")[1]
        for row in result("public_commits")["commits"]
        if row["due"] == "TL501" and row["found"]
    }
    assert {"TorchSSL", "miles-credit"} <= found
    assert "TorchSSL and miles-credit had this bug" in README
