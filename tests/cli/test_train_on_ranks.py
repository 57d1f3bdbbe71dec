"""`trueloop train` and its peers on several ranks: one run, whoever takes part in it."""

from __future__ import annotations

import contextlib
import io
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from on_ranks import endings, on_ranks
from trueloop import ranks
from trueloop.checkpoint import load_checkpoint
from trueloop.cli import main
from trueloop.run import Run

Outcome = tuple[int, str, str]
STOPPED = ("--max-minutes", "1e-9")


def _commands(folder: str, commands: list[tuple[str, ...]], sets: dict[str, str]) -> list[Outcome]:
    """Exit status, stdout and stderr of `trueloop WORDS…`, each in turn, on this rank."""
    os.chdir(folder)
    os.environ.update(sets)
    outcomes = []
    for words in commands:
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            status = main(list(words))
        outcomes.append((status, out.getvalue(), err.getvalue()))
        ranks.barrier("the end of a command")
    return outcomes


def on(count: int, folder: Path, *commands: tuple[str, ...], **sets: str) -> list[list[Outcome]]:
    """By command, what it left on each rank; `sets` are variables of the environment."""
    by_rank = on_ranks(count, _commands, str(folder), list(commands), sets)
    return [list(outcomes) for outcomes in zip(*by_rank, strict=True)]


def fine(outcomes: list[Outcome]) -> str:
    """What rank 0 has printed, where all went well and no other rank has said a word."""
    assert [status for status, _, _ in outcomes] == [0] * len(outcomes), outcomes
    assert [(out, err) for _, out, err in outcomes[1:]] == [("", "")] * (len(outcomes) - 1)
    return outcomes[0][1]


def scores_of(run: Path) -> dict[str, float]:
    results = Run(run).results
    return {
        **results["scores"],
        **{f"test_{k}": v for k, v in (results["test_scores"] or {}).items()},
    }


def weights_of(run: Path, which: str = "last") -> dict[str, Any]:
    found: dict[str, Any] = load_checkpoint(Run(run).checkpoints, which=which)["model"]
    return found


def log_of(run: Path) -> list[dict[str, Any]]:
    lines = Run(run).metrics()
    return [{k: v for k, v in line.items() if k not in ("time", "seconds")} for line in lines]


def assert_same_results(run: Path, other: Path, rel: float = 1e-5, atol: float = 1e-6) -> None:
    """The same run but for the order in which sums were added."""
    one, two = scores_of(run), scores_of(other)
    assert one.keys() == two.keys()
    for name in one:
        assert two[name] == pytest.approx(one[name], rel=rel, abs=1e-7), name
    first, second = weights_of(run), weights_of(other)
    for name in first:
        torch.testing.assert_close(second[name], first[name], rtol=rel, atol=atol)


@pytest.fixture(scope="module")
def one(tmp_path_factory: pytest.TempPathFactory, line_file: Path) -> Path:
    """The line trained in one process, which other runs are compared to."""
    folder = tmp_path_factory.mktemp("one")
    (outcomes,) = on(1, folder, ("train", f"{line_file}:Line", "--run", "one"))
    fine(outcomes)
    return folder / "one"


@pytest.mark.parametrize("count", [2, 3])
def test_ranks_train_the_run_of_one_process(
    tmp_path: Path, line: str, one: Path, count: int
) -> None:
    words = ("train", line, "--run", "many", "--log-ranks", "--profile", "4")
    (outcomes,) = on(count, tmp_path, words)
    assert "validation MAE" in fine(outcomes)
    assert_same_results(one, tmp_path / "many")
    run = Run(tmp_path / "many")
    assert run.config["ranks"] == run.environment["ranks"] == count
    assert sum(run.environment["hosts"].values()) == count
    assert run.environment["parallel"] == "ddp"
    assert run.profile is not None  # of rank 0 alone
    assert (run.profile["first"], run.profile["updates"]) == (5, 4)
    assert [line["samples"] for line in log_of(run.path) if line["kind"] == "update"] == [
        line["samples"] for line in log_of(one) if line["kind"] == "update"
    ]
    assert f"<dd>{count}, ddp</dd>" in (run.path / "report.html").read_text("utf-8")
    for rank in range(count):
        lines = (run.path / "log" / f"rank-{rank}.jsonl").read_text("utf-8").splitlines()
        kinds = [json.loads(line)["kind"] for line in lines]
        assert (kinds[0], kinds[-1]) == ("start", "end")
        assert kinds.count("update") == 12
        assert kinds.count("eval") == 3
        assert json.loads(lines[0])["rank"] == rank


def test_a_run_goes_on_on_as_many_ranks_bitwise_and_on_others_to_rounding(
    tmp_path: Path, line: str, one: Path
) -> None:
    whole, *stops = on(
        2,
        tmp_path,
        ("train", line, "--run", "whole"),
        ("train", line, "--run", "two", *STOPPED),
        ("train", line, "--run", "fewer", *STOPPED),
    )
    fine(whole)
    assert all("out of time" in fine(stop) for stop in stops)
    for words in (("resume", "two"), ("train", line, "--run", "fewer", "--resume", "auto")):
        count = 2 if "two" in words else 1
        (outcomes,) = on(count, tmp_path, (*words, "--max-minutes", "60"))
        assert "3 epochs" in fine(outcomes)
    assert log_of(tmp_path / "two") == log_of(tmp_path / "whole")
    first, second = weights_of(tmp_path / "two"), weights_of(tmp_path / "whole")
    assert all(torch.equal(first[name], second[name]) for name in second)
    assert_same_results(tmp_path / "fewer", one)


def test_a_run_of_one_process_goes_on_on_several_ranks(
    tmp_path: Path, line: str, one: Path
) -> None:
    on(1, tmp_path, ("train", line, "--run", "run", *STOPPED))
    resumed, auto = on(
        3,
        tmp_path,
        ("resume", "run", "--max-minutes", "60", "--log-ranks"),
        ("train", line, "--run", "run", "--resume", "auto"),
    )
    fine(resumed)
    assert_same_results(tmp_path / "run", one)
    assert (tmp_path / "run" / "log" / "rank-2.jsonl").exists()
    (part,) = Run(tmp_path / "run").environment["resumed"]
    assert (part["ranks"], part["parallel"], part["update"]) == (3, "ddp", 1)
    assert "<dd>1, then 3, ddp</dd>" in (tmp_path / "run" / "report.html").read_text("utf-8")
    assert fine(auto) == "run has finished: there is nothing left to do\n"


def test_a_restart_by_torchrun_goes_on_by_itself(tmp_path: Path, line: str, one: Path) -> None:
    """Without a word about which run: it is the newest that this launcher has started."""
    by = {"TORCHELASTIC_RUN_ID": "job-7"}
    on(2, tmp_path, ("train", line, *STOPPED), **by)
    on(2, tmp_path, ("train", line, *STOPPED), TORCHELASTIC_RUN_ID="of another launcher")
    (first,) = [run for run in Run.find(tmp_path / "runs") if _launch(run.path) == "job-7"]
    assert first.status == "out of time"
    words = ("train", line, "--max-minutes", "60")
    (outcomes,) = on(2, tmp_path, words, **by, TORCHELASTIC_RESTART_COUNT="1")
    fine(outcomes)
    assert len(list((tmp_path / "runs").iterdir())) == 2
    assert Run(first.path).status == "finished"
    assert_same_results(first.path, one)


def _launch(path: Path) -> Any:
    return Run(path).environment["launch"]


def test_a_restart_with_a_run_directory_goes_on_and_begins_where_there_is_none(
    tmp_path: Path, line: str, one: Path
) -> None:
    again = {"TORCHELASTIC_RESTART_COUNT": "2"}
    started, finished = on(
        2,
        tmp_path,
        ("train", line, "--run", "run", *STOPPED),
        ("train", line, "--run", "run", "--max-minutes", "60"),
        **again,
    )
    fine(started)
    fine(finished)
    assert_same_results(tmp_path / "run", one)


def test_evaluate_and_predict_on_ranks_are_those_of_one_process(
    tmp_path: Path, line_run: Path
) -> None:
    (tmp_path / "unseen").write_text("37")
    evaluate = ("evaluate", str(line_run), "--json")
    predict = ("predict", str(line_run), "--data", "unseen", "--force", "--out", "out.csv")
    found = {}
    for count in (1, 2):
        scored, predicted = on(count, tmp_path, evaluate, predict)
        table = (tmp_path / "out.csv").read_text("utf-8")
        found[count] = json.loads(fine(scored)), fine(predicted), table
        assert len(table.splitlines()) == 38
    assert found[1] == found[2]


def test_other_verbs_are_rank_0s(tmp_path: Path, line_run: Path) -> None:
    listed, explained, helped, printed = on(
        2,
        tmp_path,
        ("runs", str(line_run.parent)),
        ("explain", "TL101"),
        ("train", "spiral", "--help-all"),
        ("train", "spiral", "--print-config", "--parallel", "fsdp"),
    )
    assert line_run.name in fine(listed)
    assert "TL101" in fine(explained)
    assert "--[no-]log-ranks" in fine(helped)
    assert "parallel: fsdp" in fine(printed)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--batch-size", "1"], "less than the 2 ranks: write --batch-size 2 or more"),
        (["--parallel", "dpp"], "--parallel: unknown parallel 'dpp'"),
        (["--run", "taken"], "exists and is not empty"),
        (["--broken"], "the data is broken: mend it"),
        (["--good-batches", "5"], "this batch is rotten: take it out"),
    ],
)
def test_a_mistake_is_told_once_and_ends_all_ranks(
    tmp_path: Path, line: str, words: list[str], said: str
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "notes.txt").write_text("mine")
    found = endings(2, _program, str(tmp_path), ["train", line, "--quiet", *words])
    assert [each.status for each in found] == [2, 2]
    told = [each.stderr for each in found if each.stderr]
    assert len(told) == 1, told
    assert len(told[0].splitlines()) == 1, told
    assert said in told[0]
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left in (["taken"], ["runs", "taken"])
    assert (tmp_path / "taken" / "notes.txt").read_text() == "mine"


def test_folds_are_trained_by_all_ranks(tmp_path: Path) -> None:
    rows = [f"{k},{'ab'[k % 3 == 0]}" for k in range(60)]
    (tmp_path / "data.csv").write_text("\n".join(["x,y", *rows]))
    words = "table --data data.csv --target y --epochs 1 --width 8 --layers 1 --dropout 0 --folds 2"
    here = (*words.split(), "--no-doctor")
    outcomes = on(2, tmp_path, ("train", *here, "--run", "two"))
    fine(on(1, tmp_path, ("train", *here, "--run", "one"))[0])
    assert "(2 folds)" in fine(outcomes[0])
    for fold in ("fold-1", "fold-2"):
        two, one = (scores_of(tmp_path / name / fold) for name in ("two", "one"))
        assert two == pytest.approx(one, rel=1e-4)


def _program(folder: str, words: list[str]) -> None:
    """`trueloop WORDS…`, as a process of torchrun's runs it."""
    os.chdir(folder)
    sys.exit(main(words))


NORMS_TASK = '''
"""Two arms, told apart by a network with batch norm or without: small, and with two like layers."""

from dataclasses import dataclass

import torch
from torch import nn

import trueloop
from trueloop.tasks import Recipe, Splits


class Block(nn.Sequential):
    """What is sharded one by one."""


class Arms(trueloop.Task):
    """Two arms."""

    classes = ["left", "right"]
    recipe = Recipe(epochs=2, batch_size=16, lr=0.01)

    @dataclass(kw_only=True)
    class Options:
        norm: bool = False
        """Use batch norm."""

    def splits(self):
        x = torch.randn(75, 2, generator=torch.Generator().manual_seed(0))
        y = (x[:, 0] * x[:, 1] > 0).long()
        return Splits(train=(x[:53], y[:53]), val=(x[53:], y[53:]))

    def model(self):
        between = nn.BatchNorm1d if self.options.norm else nn.Identity
        blocks = [Block(nn.Linear(8, 8), between(8), nn.Tanh()) for _ in range(2)]
        return nn.Sequential(nn.Linear(2, 8), *blocks, nn.Linear(8, 2))
'''


@pytest.fixture(scope="module")
def arms(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("task") / "arms_task.py"
    path.write_text(NORMS_TASK)
    return f"{path}:Arms"


def test_a_sharded_model_trains_scores_and_goes_on_as_a_whole_one(
    tmp_path: Path, arms: str
) -> None:
    fsdp = ("--parallel", "fsdp", "--fsdp-blocks", "Block")
    on(1, tmp_path, ("train", arms, "--run", "one"))
    whole, stopped = on(
        2,
        tmp_path,
        ("train", arms, "--run", "sharded", *fsdp),
        ("train", arms, "--run", "stopped", *fsdp, *STOPPED),
    )
    fine(whole)
    fine(stopped)
    assert_same_results(tmp_path / "one", tmp_path / "sharded")
    assert Run(tmp_path / "sharded").environment["parallel"] == "fsdp"
    assert Run(tmp_path / "sharded").config["fsdp_blocks"] == ["Block"]
    words = ("resume", "stopped", "--max-minutes", "60", "--parallel", "ddp")
    (resumed,) = on(2, tmp_path, words)
    fine(resumed)
    assert_same_results(tmp_path / "one", tmp_path / "stopped")


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_scores_of_batch_norm_are_those_of_the_weights_that_are_saved(
    tmp_path: Path, arms: str, parallel: str
) -> None:
    """Each rank has running statistics of its own, until those of rank 0 become all ranks'."""
    (trained,) = on(2, tmp_path, ("train", arms, "--norm", "--run", "r", "--parallel", parallel))
    fine(trained)
    (scored,) = on(1, tmp_path, ("evaluate", "r", "--json"))
    there, here = Run(tmp_path / "r").results["scores"], json.loads(fine(scored))["scores"]["val"]
    for name, value in here.items():
        assert there[f"val_{name}"] == pytest.approx(value, rel=1e-5), name


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fsdp-replicate", "2"], "--fsdp-replicate is for fsdp: write --parallel fsdp with it"),
        (["--parallel", "fsdp", "--fsdp-replicate", "0"], "--fsdp-replicate must be 1 to"),
        (["--parallel", "fsdp", "--fsdp-param-dtype", "fp8"], "unknown fsdp-param-dtype 'fp8'"),
    ],
)
def test_options_of_fsdp_that_cannot_work(
    capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert main(["train", "spiral", *words]) == 2
    assert said in capsys.readouterr().err
