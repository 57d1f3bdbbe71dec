import json
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import warm_python
from trueloop.errors import RunError
from trueloop.records import EvalRecord
from trueloop.run import Run, environment, json_files
from trueloop.run.log import best_eval


def test_a_run_keeps_what_is_written_to_it(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "deep" / "a", config={"lr": 0.1, "recipe": {"clip_norm": 1.0}})
    assert (run.data, run.task_state, run.results, run.metrics()) == ({}, {}, {}, [])
    assert run.status == "unfinished"
    run.write_data({"rows": 10})
    run.write_task({"classes": ["NaN", "b"]})
    run.write_results(
        {
            "status": "finished",
            "classes": ["NaN"],
            "scores": {"val_loss": math.nan},
            "test_scores": None,
            "per_class": [{"name": "NaN", "f1": math.nan}],
        }
    )
    again = Run(tmp_path / "deep" / "a")
    assert again.config == {"lr": 0.1, "recipe": {"clip_norm": 1.0}}
    assert again.option("clip_norm") == 1.0
    assert again.option("absent", 7) == 7
    assert again.data == {"rows": 10}
    assert again.task_state == {"classes": ["NaN", "b"]}
    assert again.status == "finished"
    assert again.results["classes"] == ["NaN"]
    assert again.results["per_class"][0]["name"] == "NaN"
    assert math.isnan(again.results["scores"]["val_loss"])
    assert math.isnan(again.results["per_class"][0]["f1"])
    assert again.environment["torch"]


def test_an_empty_folder_may_become_a_run(tmp_path: Path) -> None:
    assert Run.create(tmp_path, config={}).path == tmp_path


def one_line(caught: pytest.ExceptionInfo[RunError]) -> str:
    message = str(caught.value)
    assert "\n" not in message
    assert ": " in message, "the remedy follows a colon"
    return message


def test_folders_that_cannot_become_a_run(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "notes.txt").write_text("x")
    Run.create(tmp_path / "taken", config={})
    for path, cause in {
        tmp_path / "file": "is a file",
        tmp_path / "file" / "below": "Not a directory",
        tmp_path / "full": "not empty",
        tmp_path / "taken": "already contains a run.*trueloop resume",
        Path("/proc/nowhere/run"): "cannot create",
        tmp_path / ("x" * 300): "File name too long",
    }.items():
        with pytest.raises(RunError, match=cause) as caught:
            Run.create(path, config={})
        assert str(path) in one_line(caught)


def test_a_config_that_json_cannot_hold_leaves_no_run(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"config\.model is a object"):
        Run.create(tmp_path / "a", config={"model": object()})
    with pytest.raises(RunError, match="no run at"):
        Run(tmp_path / "a")


def test_opening_what_is_no_run(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    Run.create(runs / "spiral-1", config={})
    (tmp_path / "file").write_text("x")
    for path, words in {
        runs / "spirl-1": "did you mean 'spiral-1'",
        runs: "name one of them",
        tmp_path / "file": "is a file",
        tmp_path / "absent": "trueloop train",
    }.items():
        with pytest.raises(RunError, match=words) as caught:
            Run(path)
        assert str(path) in one_line(caught)


def test_corrupt_files_are_named_when_they_are_read(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", config={})
    (run.path / "results.json").write_text("{")
    (run.path / "data.json").write_text("[]")
    with pytest.raises(RunError, match=r"results\.json is corrupt"):
        _ = run.status
    with pytest.raises(RunError, match=r"data\.json is corrupt"):
        _ = run.data


@pytest.mark.parametrize(
    "content",
    ['{"scores": [1]}', '{"per_class": 3}', '{"pictures": ["a"]}', '{"status": 7}'],
)
def test_results_of_the_wrong_shape_are_corrupt(tmp_path: Path, content: str) -> None:
    run = Run.create(tmp_path / "a", config={})
    (run.path / "results.json").write_text(content)
    with pytest.raises(RunError, match=r"results\.json is corrupt"):
        _ = run.results


def test_findings_are_kept_once_each(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", config={}, environment={})
    assert run.findings is None
    run.add_findings([])
    assert run.findings == []
    first, second = {"code": "TL1", "place": "a:1", "count": 1}, {"code": "TL1", "place": "b:2"}
    run.add_findings([first, second])
    run.add_findings([first | {"count": 7}, {"code": "TL2", "place": "a:1"}])
    assert run.findings == [first | {"count": 7}, second, {"code": "TL2", "place": "a:1"}]
    run.begin_again({})
    assert run.findings is None


@pytest.mark.parametrize("content", ['{"findings": 3}', '{"findings": [1]}', "[", "[1]"])
def test_damaged_findings_are_named(tmp_path: Path, content: str) -> None:
    run = Run.create(tmp_path / "run", config={}, environment={})
    (run.path / "findings.json").write_text(content)
    with pytest.raises(RunError, match=r"findings\.json"):
        _ = run.findings


def test_a_run_that_cannot_be_written_leaves_no_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path, content: bytes) -> None:
        raise RunError(f"cannot write {path}: free some space")

    monkeypatch.setattr(json_files, "write_atomic", full)
    with pytest.raises(RunError, match="free some space"):
        Run.create(tmp_path / "a", config={})
    assert list(tmp_path.iterdir()) == []


def test_a_run_behind_a_link_can_be_discarded(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    Run.create(tmp_path / "link", config={}).discard()
    assert not (tmp_path / "real").exists()


def test_find_lists_all_runs_and_survives_damage(
    tmp_path: Path, make_spiral: Callable[..., Run]
) -> None:
    done = make_spiral("done", epochs=12)
    going = Run.create(tmp_path / "deep" / "going", config={"task": "t", "monitor": "val_accuracy"})
    (log,) = going.sinks()
    for epoch, accuracy in enumerate((0.5, 0.75, 0.6)):
        log(EvalRecord({"val_accuracy": accuracy}, 10, epoch, epoch + 1))
    log.close()  # type: ignore[attr-defined]
    for name, content in {"torn": "{", "list": '{"scores": 3}'}.items():
        broken = Run.create(tmp_path / "broken" / name, config={})
        (broken.path / "results.json").write_text(content)
    other = tmp_path / "some-model"
    other.mkdir()
    (other / "config.json").write_text("{}")  # another program's

    found = {summary.path.name: summary for summary in Run.find(tmp_path)}
    assert set(found) == {"done", "going", "torn", "list"}
    assert found["torn"].status == found["list"].status == "unreadable"
    assert "results.json" in (found["torn"].problem or "")
    first = found["done"]
    assert (first.status, first.task, first.epochs, first.updates) == ("finished", "spiral", 12, 96)
    assert first.score == done.results["scores"]["val_accuracy"]
    assert first.started == done.environment["started"]
    second = found["going"]
    assert (second.status, second.score, second.epochs) == ("unfinished", 0.75, 3)


def test_find_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="no folder"):
        Run.find(tmp_path / "absent")
    assert Run.find(tmp_path) == []


def test_best_eval_takes_the_earliest_of_equals_and_no_nan() -> None:
    evals = [{"val_loss": math.nan}, {"val_loss": 2.0, "k": 1}, {"val_loss": 2.0, "k": 2}, {}]
    assert best_eval(evals, "val_loss") == {"val_loss": 2.0, "k": 1}
    assert best_eval([{"val_r2": -3.0}, {"val_r2": 0.5}], "val_r2") == {"val_r2": 0.5}
    assert best_eval([{}], "val_loss") is None
    assert best_eval([{"val_loss": 1.0}], None) is None


def test_environment_is_plain_and_knows_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert environment()["git"] is None
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "init", "-q"], check=True)
    subprocess.run(["git", *identity, "commit", "-q", "--allow-empty", "-m", "x"], check=True)
    facts = environment()
    assert json.loads(json.dumps(facts)) == facts
    assert len(facts["git"]["commit"]) == 40
    assert facts["git"]["modified"] is False
    assert facts["started"].endswith("+00:00")
    monkeypatch.setenv("PATH", "")
    assert environment()["git"] is None


def test_the_package_imports_no_heavy_library() -> None:
    heavy = {"rich", "plotly", "PIL", "jinja2", "matplotlib", "polars"}
    code = (
        "import sys; assert 'trueloop' not in sys.modules; import trueloop.run; "
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = warm_python.run([sys.executable, "-c", code], start=warm_python.Bare, text=True)
    assert (done.stdout, done.stderr) == ("[]\n", "")
