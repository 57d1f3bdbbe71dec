"""A report that is one file, and one that is written while the run is going on."""

from __future__ import annotations

import base64
import gzip
import re
from pathlib import Path
from typing import Any

import pytest
from made_up import step_record
from plotly.offline import get_plotlyjs
from test_report import Page

from trueloop.atomic import WriteError
from trueloop.cli import _live_report as live_report
from trueloop.cli._live_report import LiveReport
from trueloop.lengths import Interval
from trueloop.records import EvalRecord
from trueloop.run import MetricsLog, Run, compare, write_report


def unpacked(page: Path) -> str:
    found = re.search(r'id="packed">([^<]+)<', page.read_text())
    assert found is not None
    return gzip.decompress(base64.b64decode(found[1])).decode()


def test_a_report_that_is_one_file_has_all_in_it(finished: Run, tmp_path: Path) -> None:
    path = write_report(finished, one_file=tmp_path / "mail" / "run.html")
    page = Page(path)
    assert list(path.parent.iterdir()) == [path]
    assert path.stat().st_size < 10_000_000
    assert unpacked(path) == get_plotlyjs()
    assert page.links
    for link in page.links:  # no file beside it, and no address
        assert link.startswith("data:image/"), link[:50]
    pictures = sorted((finished.path / "pictures").glob("*.*"))
    embedded = {base64.b64decode(link.partition("base64,")[2]) for link in page.links}
    assert embedded <= {picture.read_bytes() for picture in pictures}
    assert page.figures == Page(write_report(finished)).figures


def test_a_comparison_can_be_one_file_too(finished: Run, tmp_path: Path) -> None:
    path = compare([finished, finished], tmp_path / "two.html", one_file=True)
    assert unpacked(path) == get_plotlyjs()
    assert not (tmp_path / "plotly.min.js").exists()


def live(run: Run, every: Interval, updates: range, monkeypatch: Any) -> list[tuple[int, str]]:
    """After which updates the page was written, and what it said."""
    pages: list[tuple[int, str]] = []
    real, now = live_report.write_report, [0]

    def noted(*given: Any, **options: Any) -> Path:
        path = real(*given, **options)
        pages.append((now[0], Page(path).text))
        return path

    monkeypatch.setattr(live_report, "write_report", noted)
    monkeypatch.setattr(live_report, "_SHARE", 0)
    sink = LiveReport(run, every)
    with MetricsLog(run.path / "metrics.jsonl", flush_seconds=0) as log:
        sink.begin(updates=updates.start - 1, samples=64 * (updates.start - 1), tokens=0, seconds=0)
        for number in updates:
            now[0] = number
            record = step_record(number, batches=8)
            log(record)
            sink(record)
            if number % 8 == 0:
                scores = EvalRecord({"val_loss": 1.0 / number}, 5, number // 8 - 1, number)
                log(scores)
                sink(scores)
    return pages


@pytest.mark.parametrize(
    ("every", "start", "written"),
    [
        (Interval(10, "updates"), 1, [0, 10, 20, 30]),
        (Interval(10, "updates"), 6, [0, 10, 20, 30]),
        (Interval(640, "samples"), 6, [0, 10, 20, 30]),
        (Interval(2, "epochs"), 1, [0, 17]),
    ],
)
def test_a_page_of_a_run_that_is_going_on(
    tmp_path: Path, monkeypatch: Any, every: Interval, start: int, written: list[int]
) -> None:
    run = Run.create(tmp_path / "run", config={"updates": 32})
    run.write_results({"status": "interrupted", "scores": {"val_loss": 77.0}})  # of a part before
    pages = live(run, every, range(start, 33), monkeypatch)
    assert [number for number, _ in pages] == written
    for _, text in pages:
        assert f"is written again every {every};" in text
        assert "Status running" in text
        assert "Stop reloading" in text
        assert "interrupted" not in text
    assert f"{written[-1]:,}" in pages[-1][1]
    text = Page(write_report(run)).text
    assert "interrupted" in text
    assert "reload" not in text


def test_a_page_that_cannot_be_written_does_not_end_the_run(
    tmp_path: Path, monkeypatch: Any
) -> None:
    def full(*given: Any, **options: Any) -> Path:
        raise WriteError("cannot write report.html (No space left on device): free some space")

    run = Run.create(tmp_path / "run", config={})
    monkeypatch.setattr(live_report, "write_report", full)
    monkeypatch.setattr(live_report, "_SHARE", 0)
    sink = LiveReport(run, Interval(1, "updates"))
    with pytest.warns(RuntimeWarning, match="continues without a live report") as warned:
        sink.begin(updates=0, samples=0, tokens=0, seconds=0.0)
    sink(step_record(1))
    sink(step_record(2))
    assert len(warned) == 1
