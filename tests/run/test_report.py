import json
import math
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from made_up import step_record, write_log

from trueloop.errors import RunError
from trueloop.records import EvalRecord
from trueloop.run import Figures, MetricsLog, Run, compare, write_report

VOID = {"meta", "img", "source", "br", "hr", "link", "input"}


class Page(HTMLParser):
    """Text, references and the figures of a page; fails where tags do not match."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.words: list[str] = []
        self.links: list[str] = []
        self.charts: list[str] = []
        self.open: list[str] = []
        self.json = ""
        self.scripts = 0
        self._in_json = False
        self.feed(path.read_text(encoding="utf-8"))
        self.close()
        assert self.open == [], "every tag is closed"

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.links += [v for k, v in attrs if k in ("src", "href", "srcset") and v]
        if given.get("class") == "chart":
            self.charts.append(given["data-figure"] or "")
        self.scripts += tag == "script"
        self._in_json = given.get("type") == "application/json"
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag
        self._in_json = False

    def handle_data(self, data: str) -> None:
        if self._in_json:
            self.json += data
        elif self.open and self.open[-1] not in ("script", "style") and data.strip():
            self.words.append(" ".join(data.split()))

    @property
    def text(self) -> str:
        return " ".join(self.words)

    @property
    def figures(self) -> dict[str, Any]:
        def refuse(constant: str) -> None:
            raise AssertionError(f"{constant} is no JSON")

        figures: dict[str, Any] = json.loads(self.json, parse_constant=refuse)
        return figures


def report(run: Run) -> Page:
    path = write_report(run)
    assert path == run.path / "report.html"
    page = Page(path)
    if page.json:
        assert set(page.charts) == set(page.figures)
    for link in page.links:
        assert "://" not in link, "the page needs no network"
        assert (run.path / link).is_file(), "every reference is there, beside the page"
    return page


def test_a_finished_run_shows_everything_result_first(finished: Run) -> None:
    page = report(finished)
    results = finished.results
    accuracy = f"{results['scores']['val_accuracy']:.4f}"
    assert page.words.index(accuracy) < 8
    where = f"validation accuracy at epoch {results['best_epoch']} of 100"
    for text in (
        where, "overfitting", "finished", "12.3 s", "17,283", "Loss", "Learning rate",
        "Gradient norm before clipping", "of the updates were clipped to 1.", "Confusion matrix",
        "Most frequent confusions", "Per class", "yellow", "Decision boundary",
        "One frame per tenth epoch", "recipe.batch_size", "training points", "torch",
    ):  # fmt: skip
        assert text in page.text, text
    assert page.text.index(where) < page.text.index("Learning rate") < page.text.index("recipe.lr")
    assert page.charts == ["loss", "scores-0", "learning-rate", "gradient-norm"]
    assert "pictures/boundary.webp" in page.links
    assert (finished.path / "plotly.min.js").stat().st_size > 1_000_000


def test_the_script_for_the_charts_is_written_once(finished: Run) -> None:
    write_report(finished)
    script = finished.path / "plotly.min.js"
    before = script.stat().st_mtime_ns
    write_report(finished)
    assert script.stat().st_mtime_ns == before


def test_the_report_reads_nothing_but_the_run(finished: Run, tmp_path: Path) -> None:
    moved = finished.path.rename(tmp_path / "moved elsewhere & renamed")
    page = report(Run(moved))
    assert "moved elsewhere & renamed" in page.text


def test_a_monitored_loss_is_told_as_the_accuracy_of_its_epoch(
    make_spiral: Callable[..., Run],
) -> None:
    run = make_spiral(
        "a", monitor="val_loss", best_epoch=3, scores={"val_loss": 0.5, "val_accuracy": 0.875}
    )
    text = report(run).text
    assert "0.8750 validation accuracy at epoch 3 of 100 (lowest validation loss)" in text
    run.write_results({**run.results, "scores": {"train_loss": 0.25, "val_loss": 0.5}})
    assert "0.5000 validation loss at epoch 3 of 100 " in report(run).text


def test_test_scores_stand_beside_the_others(make_spiral: Callable[..., Run]) -> None:
    run = make_spiral("a", epochs=6, test_scores={"loss": 0.125, "accuracy": 0.0625})
    page = report(run)
    assert "test" in page.words
    assert "0.06250" in page.text


HOSTILE = "</script><b>&\"'`{{7*7}}"


def test_hostile_names_are_text(make_spiral: Callable[..., Run]) -> None:
    names = [HOSTILE, "<img src=x onerror=alert(1)>", "a"]
    rows = [{"name": n, "precision": 1, "recall": 1, "f1": 1, "support": 1} for n in names]
    run = make_spiral(
        "a & b", epochs=6, classes=names, per_class=rows, task=HOSTILE,
        pictures=[{"file": "../../etc/passwd", "title": "t", "caption": "c"}],
    )  # fmt: skip
    run.write_data({HOSTILE: [HOSTILE]})
    with MetricsLog(run.path / "metrics.jsonl") as log:
        log(EvalRecord({f"val_{HOSTILE}": 1.0}, 1, 6))
    ordinary = report(make_spiral("b", epochs=6))
    page = report(run)
    assert page.scripts == ordinary.scripts
    assert page.text.count(HOSTILE) >= 6
    assert "x" not in page.links
    assert not any("passwd" in link for link in page.links)
    assert "<b>" not in json.dumps(page.figures), "plotly would take it for HTML"


def test_many_classes_become_a_heat_map(make_spiral: Callable[..., Run]) -> None:
    count = 40
    names = [f"class {k}" for k in range(count)]
    matrix = (np.eye(count, dtype=int) * 9 + 1).tolist()
    rows = [{"name": n, "precision": 1, "recall": 1, "f1": 1, "support": 49} for n in names]
    page = report(make_spiral("a", epochs=6, classes=names, confusion=matrix, per_class=rows))
    assert "confusion" in page.charts
    assert page.figures["confusion"]["data"][0]["customdata"][3][3] == 10
    assert "40 classes" in page.text
    huge = np.eye(300, dtype=int).tolist()
    assert "confusion" not in report(make_spiral("b", epochs=6, confusion=huge)).charts


def regression(path: Path) -> Run:
    draws = np.random.default_rng(0)
    target = draws.lognormal(8, 1, 3000)
    prediction = target * draws.lognormal(0, 0.1, 3000)
    prediction[0] = math.nan
    run = Run.create(path, config={"epochs": 6, "clip_norm": None, "monitor": "val_loss"})
    write_log(run, epochs=6)
    run.write_results(
        {
            "status": "out of time", "task": "table", "kind": "regression", "classes": None,
            "best_epoch": 6, "epochs": 6, "updates": 48, "seconds": 3700.0, "monitor": "val_loss",
            "scores": {"val_loss": 0.1, "val_r2": 0.98, "val_mae": 280.0}, "test_scores": None,
            "confusion": None, "per_class": None, "parameters": None, "pictures": [],
            "residuals": {"target": target.tolist(), "prediction": prediction.tolist()},
        }
    )  # fmt: skip
    return run


def test_regression_shows_its_residuals(tmp_path: Path) -> None:
    page = report(regression(tmp_path / "r"))
    assert "0.9800 validation R² at epoch 6 of 6" in page.text
    assert "2,999 validation samples" in page.text
    assert "1 h 01 min" in page.text
    assert "Gradients were not clipped by their norm." in page.text
    assert {"predicted", "residuals"} <= set(page.charts)
    points, diagonal = page.figures["predicted"]["data"]
    assert 1000 <= len(points["x"]) <= 2000
    assert diagonal["x"] == diagonal["y"]
    assert "Confusion" not in page.text


def test_a_run_without_validation(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", config={"epochs": 12})
    write_log(run, epochs=8, val=False)
    page = report(run)
    assert "No validation." in page.text
    assert "training loss at epoch" in page.text
    assert "of 12; the run ended after 8" in page.text
    assert "it is still going, or was killed" in page.text
    assert "unfinished" in page.text


def test_a_run_that_has_only_begun(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", config={})
    page = report(run)
    assert "no score yet" in page.text
    assert page.charts == []
    with MetricsLog(run.path / "metrics.jsonl") as log:
        log(step_record(1))
    page = report(run)
    assert "the first epoch is not complete" in page.text
    assert page.charts == ["learning-rate", "gradient-norm"]


def test_one_epoch(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", config={"epochs": 1})
    write_log(run, epochs=1)
    page = report(run)
    assert "Too short to say." in page.text
    assert "at epoch 1 of 1" in page.text
    train = page.figures["loss"]["data"][1]
    assert (train["mode"], train["x"]) == ("markers", [1.0])


def test_a_run_that_came_to_nan(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", config={"epochs": 9, "clip_norm": 1.0})
    nan = torch.tensor(math.nan)
    with MetricsLog(run.path / "metrics.jsonl") as log:
        for update in range(1, 9):
            log(step_record(update, loss=nan, grad_norm=nan))
        log(step_record(8, loss=nan, grad_norm=nan, skipped=True))
        for epoch in range(6):
            log(EvalRecord({"train_loss": math.nan, "val_loss": math.nan}, 9, epoch, 8))
    run.write_results({"status": "failed", "error": "the gradient of 0.weight is NaN"})
    page = report(run)
    assert "Diverged." in page.text
    assert "The run failed: the gradient of 0.weight is NaN." in page.text
    assert "1 update was skipped" in page.text
    assert "gradient-norm" not in page.charts


def test_speed_is_that_of_training(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", config={})
    lines = [
        {"kind": "update", "epoch": k // 10 + 1, "batch": k % 10, "update": k + 1, "loss": 1.0,
         "grad_norm": 1.0, "lr": 0.1, "samples": 50, "skipped": False,
         "time": 0.1 * k + 5.0 * (k // 10)}
        for k in range(20)
    ]  # fmt: skip
    # Evaluations of 3 s and 5 s; after the first, pictures are drawn for 2 s.
    evaluation = {"kind": "eval", "epoch": 1, "update": 10, "val_loss": 1.0, "time": 3.9}
    lines.insert(10, {**evaluation, "seconds": 3.0})
    lines.append({**evaluation, "epoch": 2, "time": 11.9, "seconds": 5.0})
    (run.path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    page = report(run)
    assert page.words[page.words.index("Samples per second") + 1] == "500"


def test_corrupt_files_are_named(finished: Run) -> None:
    (finished.path / "data.json").write_text("{")
    with pytest.raises(RunError, match=r"data\.json is corrupt"):
        write_report(finished)
    assert not (finished.path / "report.html").exists()


def finding(code: str, severity: str, **values: Any) -> dict[str, Any]:
    return {
        "code": code,
        "name": "a-rule",
        "severity": severity,
        "path": "t.py",
        "line": 3,
        "column": 1,
        "place": "t.py:3",
        "message": f"Something about `{code}` & <b>more</b>.",
        "fix": "Mend it.",
        "count": 1,
        "seen": "live",
        **values,
    }


def test_findings_are_shown_the_worst_first(finished: Run) -> None:
    advice = finding("TL714", "advice", count=1200, fix=None)
    finished.add_findings([advice, finding("TL710", "error"), finding("TL717", "warning")])
    page = report(finished)
    text = page.text
    places = [text.index(f"trueloop explain {code}") for code in ("TL710", "TL717", "TL714")]
    assert places == sorted(places)
    assert text.index("17,283") < text.index("Findings") < text.index("Learning rate")
    for part in ("t.py:3", "error TL710 a-rule", "Mend it.", "seen 1,200 times", "& <b>more</b>."):
        assert part in text
    assert "No findings." not in text
    source = (finished.path / "report.html").read_text("utf-8")
    assert "about <code>TL710</code> &amp; &lt;b&gt;more" in source
    assert source.count('<li class="bad">') == source.count('<li class="warn">') == 1


def test_no_findings_are_one_line_and_not_to_have_looked_is_none(finished: Run) -> None:
    assert "Findings" not in report(finished).text
    finished.add_findings([])
    text = report(finished).text
    assert text.count("Findings No findings.") == 1
    assert text.index("No findings.") > text.index("Learning rate")


def test_comparing_runs(tmp_path: Path, make_spiral: Callable[..., Run]) -> None:
    runs = [
        make_spiral("a/same", epochs=20, scores={"val_loss": 0.5, "val_accuracy": 0.875}),
        make_spiral("b/same", epochs=20, lr=0.5, scores={"val_loss": 0.25, "val_accuracy": 0.75}),
        Run.create(tmp_path / "new", config={"task": "spiral", HOSTILE: 1}),
    ]
    out = tmp_path / "pages" / "compare.html"
    assert compare(runs, out) == out
    page = Page(out)
    assert set(page.charts) == set(page.figures) == {"overlay-0", "overlay-1", "overlay-2"}
    assert page.links == ["plotly.min.js"]
    assert (out.parent / "plotly.min.js").is_file()
    for text in ("3 runs compared", "a/same", "b/same", "recipe.lr", HOSTILE, "unfinished"):
        assert text in page.text
    assert "recipe.batch_size" in page.text, "the new run has none"
    source = out.read_text()
    assert '<td class="best">0.8750</td>' in source
    assert '<td class="best">0.2500</td>' in source
    assert source.count('class="best"') == 2
    names = [trace["name"] for trace in page.figures["overlay-0"]["data"]]
    assert names == ["a/same", "a/same, training", "b/same", "b/same, training"]


def test_of_runs_that_validate_on_different_samples_no_best_is_marked(
    tmp_path: Path, make_spiral: Callable[..., Run]
) -> None:
    """A seed deals the samples into parts: the scores are of different ones."""
    runs = [make_spiral(f"seed-{seed}", epochs=6, seed=seed) for seed in (0, 1)]
    page = Page(out := compare(runs, tmp_path / "c.html"))
    assert "not evaluated on the same samples: seed is 0, 1." in page.text
    assert 'class="best"' not in out.read_text()


def test_of_losses_of_different_kinds_no_best_is_marked(
    tmp_path: Path, make_spiral: Callable[..., Run]
) -> None:
    """The loss of quantiles is not the squared error; an accuracy or an R² is what it was."""
    runs = [
        make_spiral(name, epochs=6, scores=scores)
        for name, scores in (
            ("mean", {"val_loss": 0.5, "val_accuracy": 0.875}),
            ("quantiles", {"val_loss": 0.25, "val_accuracy": 0.75}),
        )
    ]
    for run, quantiles in zip(runs, ([], [0.1, 0.9]), strict=True):
        config = json.loads((run.path / "config.json").read_text())
        (run.path / "config.json").write_text(json.dumps(config | {"quantiles": quantiles}))
    page = Page(out := compare([Run(run.path) for run in runs], tmp_path / "c.html"))
    assert "but of no loss, as the losses are different: quantiles is" in page.text
    assert out.read_text().count('class="best"') == 1
    assert '<td class="best">0.8750</td>' in out.read_text()


def test_runs_on_different_data_are_not_compared_with_each_other(
    tmp_path: Path, make_spiral: Callable[..., Run]
) -> None:
    runs = []
    for name, digest, loss in (("a", "1" * 64, 0.5), ("b", "2" * 64, 0.1), ("c", "1" * 64, 0.25)):
        run = make_spiral(name, epochs=6, scores={"val_loss": loss})
        run.write_environment({**run.environment, "data": {"path": "/same", "digest": digest}})
        runs.append(run)
    page = Page(out := compare(runs, tmp_path / "c.html"))
    assert "different data sets" in page.text
    source = out.read_text()
    assert source.count('<table class="results">') == 2
    assert source.count('class="best"') == 1
    assert '<td class="best">0.2500</td>' in source
    names = [trace["name"] for trace in page.figures["overlay-0"]["data"]]
    assert names == ["a", "a, training", "c", "c, training"]


def test_the_configuration_begins_with_what_was_given(finished: Run) -> None:
    config = {"task": "spiral", "lr": 0.1, "batch_size": 64, "clip_norm": 2.0, "ema": None}
    finished.write_config(config)
    rest = "Configuration task spiral lr 0.1 batch_size 64 clip_norm 2 1 more option:"
    assert f"{rest} not set ema –" in report(finished).text
    finished.write_environment({**finished.environment, "options_given": ["task", "ema", "lr"]})
    text = report(finished).text
    # In the order of the options, the given one without a value too.
    given = "Configuration task spiral lr 0.1 ema – batch_size 64"
    assert f"{given} 1 more option: defaults clip_norm 2 Data" in text
    assert "options_given" not in text


def test_equal_configurations_and_bad_requests(
    tmp_path: Path, make_spiral: Callable[..., Run]
) -> None:
    run = make_spiral("a", epochs=6)
    assert (
        "the runs have the same configuration"
        in Page(compare([run, run], tmp_path / "c.html")).text
    )
    with pytest.raises(RunError, match="no run to compare"):
        compare([], tmp_path / "c.html")
    with pytest.raises(RunError, match="is a folder"):
        compare([run], tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="cannot write"):
        compare([run], tmp_path / "file" / "c.html")


def test_texts_are_shown_with_control_characters_as_escapes(finished: Run) -> None:
    album = Figures(finished.path)
    album.text("written", "first <b>\n", 5)
    album.text("written", "To be,\tor \x1b[31mnot\u202e\n& so on", 1200)
    words = Page(write_report(finished)).text
    assert "Written" in words
    assert "After update 1,200" in words
    page = (finished.path / "report.html").read_text(encoding="utf-8")
    assert "To be,\tor \\x1b[31mnot\\u202e\n&amp; so on" in page
    assert "first <b>" in words
    assert words.index("To be") < words.index("first <b>"), "the last one comes first"
    (finished.path / "texts" / "written" / "notes.txt").write_text("by hand")
    write_report(finished)
