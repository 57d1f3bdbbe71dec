"""`trueloop train`: what a run leaves behind, however it ends."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop import threads
from trueloop.checkpoint import load_checkpoint
from trueloop.cli import _training
from trueloop.cli._session import open_session
from trueloop.cli.options import settings_from
from trueloop.run import Run
from trueloop.tasks import limits

Command = Callable[..., Any]


def test_tasks_are_listed(command: Command) -> None:
    shown = command("train")
    assert shown.status == 0
    for task in ("spiral", "digits", "table", "images", "FILE.py:CLASS"):
        assert f"\n  {task} " in shown.out
    said = command("train", "--epochs", "3")
    assert said.status == 2
    assert "name the task first" in said.complaint


def test_what_a_run_leaves(spiral_run: Path) -> None:
    run = Run(spiral_run)
    results = run.results
    assert results["status"] == "finished"
    assert (results["task"], results["kind"], results["epochs"]) == ("spiral", "multiclass", 2)
    assert results["updates"] == 2 * 32
    assert results["parameters"] == 2 * 128 + 128 + 128 * 128 + 128 + 128 * 3 + 3
    assert results["monitor"] == "val_loss"
    assert {"train_loss", "val_loss", "val_accuracy"} <= set(results["scores"])
    confusion = torch.tensor(results["confusion"])
    assert confusion.shape == (3, 3)
    assert int(confusion.sum()) == 1000
    assert confusion.diagonal().sum() / 1000 == pytest.approx(results["scores"]["val_accuracy"])
    assert [row["name"] for row in results["per_class"]] == results["classes"]
    assert sum(row["support"] for row in results["per_class"]) == 1000
    assert run.config["task"] == "spiral"
    assert run.config["epochs"] == 2
    assert run.data["training points"] == 2000
    assert run.environment["torch"] == str(torch.__version__)
    for picture in results["pictures"]:
        assert (spiral_run / picture["file"]).stat().st_size > 0
    assert (spiral_run / "report.html").read_text().count("<html") == 1
    assert load_checkpoint(run.checkpoints, which="best")["epoch"] == results["best_epoch"] - 1


def test_best_scores_are_those_of_the_best_epoch_in_the_log(spiral_run: Path) -> None:
    run = Run(spiral_run)
    evals = [line for line in run.metrics() if line["kind"] == "eval"]
    best = min(evals, key=lambda line: line["val_loss"])
    assert run.results["best_epoch"] == best["epoch"]
    assert run.results["scores"]["val_loss"] == best["val_loss"]


def test_a_regression_with_a_test_split(line_run: Path) -> None:
    results = Run(line_run).results
    assert results["kind"] == "regression"
    assert results["confusion"] is None
    assert results["per_class"] is None
    assert set(results["residuals"]) == {"target", "prediction"}
    assert len(results["residuals"]["target"]) == len(results["residuals"]["prediction"]) == 32
    residual = torch.tensor(results["residuals"]["prediction"]) - torch.tensor(
        results["residuals"]["target"]
    )
    assert float(residual.abs().mean()) == pytest.approx(results["scores"]["val_mae"], rel=1e-5)
    assert "loss" in results["test_scores"]


def test_what_is_said_at_the_end(command: Command, tmp_path: Path) -> None:
    done = command("train", "spiral", "--epochs", "1", "--run", "here", "--quiet")
    assert done.status == 0
    assert done.err == ""
    lines = done.out.splitlines()
    assert len(lines) == 4
    assert lines[0].startswith("validation accuracy 0.")
    assert lines[0].endswith("at epoch 1 of 1")
    assert lines[1].endswith(" s, 32 updates, 1 epoch")
    assert lines[2].endswith("here")
    assert lines[3].endswith("here/report.html")
    assert (tmp_path / lines[3].split()[-1]).is_file()


def test_the_same_seed_is_the_same_run(command: Command) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        command("train", "spiral", "--epochs", "1", "--run", name, "--quiet", "--seed", seed)
    a, b, c = (load_checkpoint(Path(n, "checkpoints"), which="best")["model"] for n in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert not all(torch.equal(a[name], c[name]) for name in a)


def test_a_task_that_fails_leaves_no_directory(command: Command, line: str, tmp_path: Path) -> None:
    said = command("train", line, "--broken", "yes", "--run", "new")
    assert said.status == 2
    assert said.complaint == "trueloop: error: the data is broken: mend it"
    assert list(tmp_path.iterdir()) == []


def test_a_first_batch_that_fails_leaves_no_directory(
    command: Command, line: str, tmp_path: Path
) -> None:
    said = command("train", line, "--good-batches=0", "--monitor=val_loss", "--run=new")
    assert said.status == 2
    assert said.complaint == "trueloop: error: this batch is rotten: take it out"
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_before_the_first_update_leaves_no_directory(
    command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def interrupted(run: Run, facts: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Run, "write_data", interrupted)
    said = command("train", "spiral", "--run", "new")
    again = "no update was made, so there is nothing to resume: write the same command again"
    assert (said.status, said.complaint) == (130, f"trueloop: interrupted; {again}")
    assert list(tmp_path.iterdir()) == []


def test_an_interruption_at_the_end_says_how_to_go_on(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(run: Run) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_training, "write_report", interrupted)
        said = command("train", "spiral", "--epochs", "1", "--run", "a run", "--quiet")
    assert said.status == 130
    assert said.complaint == "trueloop: interrupted; resume with: trueloop resume 'a run'"


def test_a_task_that_returns_something_else(command: Command, tmp_path: Path) -> None:
    Path("odd.py").write_text(
        "import trueloop\n\nclass Odd(trueloop.Task):\n    def splits(self): return None\n"
        "    def model(self): return None\n"
    )
    said = command("train", "odd.py:Odd", "--run", "new")
    assert said.status == 2
    assert "Odd.splits() returned NoneType: let it return a Splits" in said.complaint
    assert not Path("new").exists()


def test_a_model_larger_than_the_memory(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """A task of one's own is built to find out; of a ready-made one it is known before."""
    Path("odd.py").write_text(
        "import torch, trueloop\n"
        "from trueloop.tasks import Splits\n"
        "class Odd(trueloop.Task):\n"
        "    kind = 'regression'\n"
        "    def splits(self):\n"
        "        return Splits(train=(torch.zeros(99, 1),) * 2, val=(torch.zeros(9, 1),) * 2)\n"
        "    def model(self): return torch.nn.Linear(10**9, 10**9)\n"
    )
    said = command("train", "odd.py:Odd", "--run=new")
    assert said.status == 2
    assert "out of memory: lower --batch-size" in said.complaint
    Path("t.csv").write_text("x,y\n" + "".join(f"{k},{k % 7}\n" for k in range(40)))
    monkeypatch.setattr(limits, "machine_memory", lambda: 4 * 2**30)
    words = ("train", "table", "--data=t.csv", "--target=y", "--width=16384", "--run=new")
    said = command(*words)
    assert said.status == 2
    assert "training with --batch-size 28 would take about 8.0 GiB of memory" in said.complaint
    assert said.complaint.endswith(
        "this machine has 4.0 GiB: write a smaller --batch-size, --width or --layers, or leave "
        "columns out with --drop"
    )
    assert not Path("new").exists()


def test_a_later_batch_that_fails_leaves_what_was_reached(command: Command, line: str) -> None:
    # Four batches and one of validation an epoch.
    said = command("train", line, "--good-batches=7", "--monitor=val_loss", "--run=new", "--quiet")
    assert said.status == 2
    assert said.complaint == "trueloop: error: this batch is rotten: take it out"
    run = Run(Path("new"))
    assert run.status == "failed"
    assert (run.results["epochs"], run.results["updates"]) == (1, 6)
    assert run.results["scores"]["val_loss"] > 0
    assert load_checkpoint(run.checkpoints, which="best")["epoch"] == 0
    assert Path("new/report.html").is_file()


def test_a_loss_that_is_not_finite(command: Command, line: str) -> None:
    done = command("train", line, "--poison", "yes", "--run", "new", "--quiet")
    assert done.status == 1
    finding, complaint = done.err.splitlines()
    assert finding.startswith("trueloop: error TH101, this run: The loss is NaN in update 1")
    assert complaint.startswith("trueloop: error: ")
    run = Run(Path("new"))
    assert run.status == "failed"
    assert run.results["error"] in complaint
    assert Path("new/report.html").is_file()


def test_early_stopping(command: Command, line: str) -> None:
    words = ["--epochs", "50", "--patience", "1", "--min-delta", "10", "--quiet", "--run", "new"]
    done = command("train", line, *words)
    assert done.status == 0
    assert Run(Path("new")).status == "stopped early"
    assert Run(Path("new")).results["epochs"] == 2
    assert "2 of 50 epochs, stopped early" in done.out


def test_out_of_time_is_evaluated_and_saved(command: Command) -> None:
    done = command("train", "spiral", "--max-minutes", "1e-9", "--run", "new", "--quiet")
    assert done.status == 0
    run = Run(Path("new"))
    assert run.status == "out of time"
    assert run.results["updates"] == 1
    assert "val_loss" in run.results["scores"]
    assert "resume with: trueloop resume new" in done.out
    assert load_checkpoint(run.checkpoints, which="last")["step"]["counters"][2] == 1


def test_options_reach_the_step(command: Command, line: str) -> None:
    words = [
        "--epochs",
        "1",
        "--batch-size",
        "8",
        "--accumulate",
        "4",
        "--schedule",
        "none",
        "--lr",
        "0.25",
    ]
    assert command("train", line, *words, "--run", "new", "--quiet").status == 0
    updates = [entry for entry in Run(Path("new")).metrics() if entry["kind"] == "update"]
    assert [entry["samples"] for entry in updates] == [32, 32]
    assert {entry["lr"] for entry in updates} == {0.25}
    config = json.loads(Path("new/config.json").read_text())
    assert (config["accumulate"], config["points"], config["task"]) == (4, 64, line)


def test_muon_trains_hidden_matrices_beside_adamw_and_goes_on(command: Command) -> None:
    words = ["--optimizer", "muon", "--schedule", "cosine", "--weight-decay", "0.1", "--quiet"]
    done = command("train", "spiral", *words, "--epochs", "2", "--run", "new")
    assert (done.status, done.err) == (0, "")  # the doctor, who has watched, found nothing
    state = load_checkpoint(Run(Path("new")).checkpoints, which="last")["step"]["optimizer"]
    assert [about["kind"] for about in state["optimizers"]] == ["Muon", "AdamW"]
    names = [group["name"] for group in state["param_groups"]]
    assert names == ["hidden", "decay", "no_decay"]
    assert {group["lr"] for group in state["param_groups"]} == {0.0}, "the schedule is of both"
    report = command("report", "new")
    assert report.status == 0
    score = command("evaluate", "new")
    assert score.status == 0


def test_a_model_without_a_hidden_matrix_is_not_muons(command: Command, line: str) -> None:
    refused = command("train", line, "--optimizer", "muon", "--run", "new")
    assert refused.status == 2
    assert "no hidden matrix for Muon" in refused.complaint
    assert not Path("new").exists()


def test_a_task_may_choose_its_recipe_by_its_data(command: Command, line: str) -> None:
    done = command("train", line, "--points=20", "--batch-size=16", "--run=new", "--quiet")
    assert done.status == 0
    config = Run(Path("new")).config
    # Chosen for so few points, except what was stated, although that is the class's own default.
    assert (config["epochs"], config["batch_size"], config["lr"]) == (1, 16, 0.01)
    assert config["monitor"] == "val_loss"


def test_a_validation_loss_that_is_never_finite(command: Command, line_file: Path) -> None:
    source = line_file.read_text().replace("val=points(32, 2)", "val=(x * float('nan'), y)")
    Path("endless.py").write_text(source)
    done = command("train", "endless.py:Line", "--monitor=val_loss", "--run=new", "--quiet")
    assert done.status == 0
    assert done.out.splitlines()[0] == "the validation loss was not finite in any of the epochs"
    assert Run(Path("new")).results["best_epoch"] is None


def test_progress_is_shown_unless_quiet(command: Command) -> None:
    shown = command("train", "spiral", "--epochs", "1", "--run", "new").out
    assert "epoch 1/1" in shown


def test_no_warning_of_others_is_shown(
    command: Command, line: str, line_file: Path, recwarn: pytest.WarningsRecorder
) -> None:
    # A warning that comes from the code of a library, not of the user's task.
    noise = "exec('import warnings; warnings.warn(\"noise\")', {'__name__': 'somelib'})"
    Path("noisy.py").write_text(
        line_file.read_text().replace("def splits(self):", f"def splits(self):\n        {noise}")
    )
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = command("train", "noisy.py:Line", "--run", "new", "--quiet", "--epochs", "1")
    assert done.status == 0
    assert done.err == ""
    assert [str(w.message) for w in recwarn] == []


def threads_of(run: str) -> tuple[int, int | None]:
    """How many threads a run was trained on, and the number that it chose by its work."""
    environment = json.loads(Path(run, "environment.json").read_text())
    chosen = json.loads(Path(run, "config.json").read_text()).get("chosen_threads")
    return environment["device"]["threads"], chosen


def test_threads_are_the_users_then_the_tasks_then_by_the_work(
    command: Command, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(2)
    short = ("--epochs=1", "--quiet")
    command("train", "spiral", *short, "--run=a", "--threads=2")
    assert threads_of("a") == (2, None)
    command("train", "spiral", *short, "--run=b")
    assert threads_of("b") == (1, 1)
    assert torch.get_num_threads() == 2
    monkeypatch.setattr(threads, "WORK_PER_THREAD", 1.0)
    command("train", line, *short, "--run=c")
    assert threads_of("c") == (2, 2)
    command("train", "spiral", *short, "--run=d", "--config=a/config.json")
    assert threads_of("d") == (2, None)
    # A new run chooses for itself, by what it trains.
    command("train", "spiral", *short, "--run=e", "--config=b/config.json")
    assert threads_of("e") == (2, 2)
    assert command("evaluate", "b").status == 0
    assert torch.get_num_threads() == 1


def test_a_run_goes_on_with_the_threads_that_it_chose(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.set_num_threads(2)
    short = ("train", "spiral", "--epochs=2", "--quiet", "--run=a", "--max-minutes=1e-9")
    assert command(*short).status == 0
    seen: list[int] = []
    whole = _training.train

    def train(*given: Any, **options: Any) -> Any:
        seen.append(torch.get_num_threads())
        return whole(*given, **options)

    monkeypatch.setattr(_training, "train", train)
    monkeypatch.setattr(threads, "WORK_PER_THREAD", 1.0)  # by which it would choose two now
    assert command("resume", "a", "--max-minutes=1e-9").status == 0
    assert command(*short[:-1], "--resume=auto").status == 0
    assert seen == [1, 1]


def test_a_limit_of_the_users_replaces_the_tasks(command: Command, line: str) -> None:
    assert command("train", line, "--clip-value=0.5", "--run=new", "--quiet").status == 0
    config = json.loads(Path("new/config.json").read_text())
    assert (config["clip_value"], config["clip_norm"]) == (0.5, None)
    done = command("train", line, "--clip-value=0.5", "--clip-norm=1", "--run=b", "--quiet")
    assert done.status == 2
    assert "write one of them" in done.err


def test_balance_draws_each_class_equally_often(command: Command, line: str) -> None:
    rows = [f"{k},{'rare' if k % 10 == 0 else 'often'}" for k in range(200)]
    Path("rare.csv").write_text("\n".join(["x,y", *rows]))
    session = open_session(
        settings_from("table", "--data rare.csv --target y --balance --batch-size 20".split())
    )
    labels = torch.cat([targets for _, targets in session.train.epoch(0)])
    assert abs(int((labels == 0).sum()) - len(labels) / 2) <= 2
    assert session.settings.config()["balance"] is True
    assert "--balance is for classes" in command("train", line, "--balance").complaint


def test_the_test_scores_of_a_finished_run_are_tracked(command: Command, line: str) -> None:
    words = ("train", line, "--schedule", "none", "--quiet", "--track", "jsonl", "--run", "tracked")
    assert command(*words, "--epochs", "1").status == 0
    assert command("resume", "tracked", "--epochs", "3", "--quiet").status == 0
    rows = Path("tracked/trackers/jsonl/evaluations.jsonl").read_text().splitlines()
    found = [row for row in map(json.loads, rows) if "test_mae" in row]
    assert [(row["update"], row["epoch"]) for row in found] == [(4, 1), (12, 3)]
    for name, value in Run("tracked").results["test_scores"].items():
        assert found[-1][f"test_{name}"] == value


def test_an_average_of_the_weights_is_scored_saved_and_used(command: Command) -> None:
    options = ("--epochs", "2", "--ema", "0.9", "--ema-warmup", "--run", "averaged")
    assert command("train", "spiral", *options).status == 0
    run = Run("averaged")
    best = load_checkpoint(run.checkpoints, which="best")
    assert best["step"]["average"]["count"] == 2 * 32
    weights = dict(run.model().named_parameters())
    trained = best["step"]["train_weights"]
    assert weights.keys() == trained.keys()
    for name, weight in weights.items():
        assert torch.equal(weight, best["model"][name])
        assert not torch.equal(weight, trained[name])
    scored = json.loads(command("evaluate", "averaged", "--json").out)["scores"]["val"]
    assert scored["loss"] == best["records"][-1][0]["val_loss"]
