"""The parts of benchmarks/watch_public.py, on a made-up repository; no script is run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "benchmarks"))

import watch_data
import watch_public
from public_clones import listed
from watch_compare import Outcome, differences, different_lines, files_in, varies

ALONE = Outcome(status=0, out="loss 0.5\n", err="", files={"a.pt": "1"}, seconds=1.0,
                notes={"weights": 7, "random": 8})  # fmt: skip


def changed(**parts: Any) -> Outcome:
    return Outcome(**{**vars(ALONE), **parts})


def test_the_same_run_has_no_difference() -> None:
    assert differences(ALONE, ALONE, changed(seconds=9.0, err="a warning")) == []


@pytest.mark.parametrize(
    ("watched", "told"),
    [
        (changed(status=1, err="KeyError"), "exit status 1 for 0: KeyError"),
        (changed(out="loss 0.6\n"), "prints 'loss 0.6' for 'loss 0.5'"),
        (changed(out="loss 0.5\nmore\n"), "prints 'more' for ''"),
        (changed(notes={"weights": 9, "random": 8}), "weights: 9 for 7"),
        (changed(notes={"weights": 7, "random": 9}), "random: 9 for 8"),
        (changed(notes={}), "weights: None for 7"),
        (changed(files={"a.pt": "2"}), "file a.pt is different"),
        (changed(files={}), "file a.pt is different"),
        (changed(files={"a.pt": "1", "b.pt": "1"}), "file b.pt is different"),
    ],
)
def test_each_difference_is_told(watched: Outcome, told: str) -> None:
    assert told in differences(ALONE, ALONE, watched)


def test_what_varies_alone_is_no_difference() -> None:
    again = changed(files={"a.pt": "2"}, notes={"weights": 7, "random": 9})
    watched = changed(files={"a.pt": "3"}, notes={"weights": 7, "random": 10})
    assert differences(ALONE, again, watched) == []
    assert varies(ALONE, again) == ["random", "a.pt"]


def test_times_and_numbers_that_vary_alone_are_left_out() -> None:
    first = "epoch 1: loss 0.5, 12.5 s, speed 80\nepoch 2: loss 0.4, 12.4 s, speed 90\n"
    second = first.replace("speed 80", "speed 81")
    slow = first.replace("12.5 s", "1m10s").replace("speed 90", "speed 20")
    assert different_lines(first, second, slow) == []
    wrong = slow.replace("loss 0.4", "loss 0.3")
    assert len(different_lines(first, second, wrong)) == 1


def test_files_of_torch_are_compared_by_content(tmp_path: Path) -> None:
    torch.save({"w": torch.ones(2)}, tmp_path / "one.pt")
    torch.save({"w": torch.ones(2)}, tmp_path / "other.pt")
    torch.save({"w": torch.zeros(2)}, tmp_path / "zeros.pt")
    found = files_in(tmp_path)
    assert found["one.pt"] == found["other.pt"] != found["zeros.pt"]


def test_times_in_the_names_of_files_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "run_1795421829").mkdir()
    (tmp_path / "run_1795421829" / "args.txt").write_text("lr=1")
    (tmp_path / "run_1795421829" / "events.out.tfevents.1795421829.host.1.0").write_text("x")
    assert list(files_in(tmp_path)) == ["run_<time>/args.txt"]


@pytest.fixture
def clones(tmp_path: Path) -> Path:
    """A clone with a script, and another file that the script does not need."""
    folder = tmp_path / "clones" / "some+one"
    (folder / "train").mkdir(parents=True)
    (folder / "train" / "main.py").write_text("epochs = 100\nprint(epochs)\n")
    (folder / "large.txt").write_text("not needed")
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "all"]):
        subprocess.run(["git", "-C", str(folder), *who, *words], check=True)
    return tmp_path / "clones"


def script(**parts: Any) -> watch_public.Script:
    return watch_public.Script("some/one", "train/main.py", "tabular", **parts)


def test_a_script_is_prepared_with_its_data(clones: Path, tmp_path: Path) -> None:
    entry = script(
        replace=(("train/main.py", "epochs = 100", "epochs = 2"),),
        data=({"kind": "table", "path": "train/data/x.csv", "rows": 3, "classes": 2},),
    )
    assert watch_public.missing(entry, clones) == ""
    watch_public.prepare(entry, clones, "HEAD", tmp_path / "run")
    assert sorted(files_in(tmp_path / "run")) == ["train/data/x.csv", "train/main.py"]
    assert (tmp_path / "run" / entry.runs_in / entry.path).read_text().startswith("epochs = 2\n")
    assert len((tmp_path / "run/train/data/x.csv").read_text().splitlines()) == 4


def test_a_replacement_that_does_not_fit_is_a_mistake(clones: Path, tmp_path: Path) -> None:
    entry = script(replace=(("train/main.py", "epochs = 50", "epochs = 2"),))
    with pytest.raises(SystemExit, match="does not contain"):
        watch_public.prepare(entry, clones, "HEAD", tmp_path / "run")


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    assert watch_public.missing(script(packages=("no_such",)), tmp_path) == "pip install no_such"
    assert watch_public.missing(script(), tmp_path) == f"no clone in {tmp_path}"


def test_findings_get_their_verdicts() -> None:
    places = [("TL102", 3), ("TL401", 9), ("TS101", 1)]
    told = [{"code": code, "severity": "error", "path": "main.py", "line": line, "message": "m",
             "fix": "f"} for code, line in places]  # fmt: skip
    known = [{"path": "main.py", "line": line, "code": code, "verdict": "true", "reason": "r"}
             for code, line in (("TL102", 3), ("TL204", 5))]  # fmt: skip
    found, gone = watch_public.judged(script(findings=tuple(known)), told)
    assert [(each["code"], each["verdict"]) for each in found] == [
        ("TL102", "true"), ("TL401", "unjudged")
    ]  # fmt: skip
    assert [each["code"] for each in gone] == ["TL204"]
    result = {"script": "s", "updates": 5, "status": 0, "same": True, "findings": found,
              "not_found_again": []}  # fmt: skip
    assert not watch_public.is_right(result)
    assert watch_public.is_right({**result, "findings": found[:1]})
    assert not watch_public.is_right({**result, "findings": found[:1], "updates": 0})
    line = watch_public.row(result)
    assert (line["true"], line["unjudged"], line["false"]) == (1, 1, 0)


def test_the_committed_list_is_complete() -> None:
    """Each script has a commit, each verdict its reason, and none comes from a held-out part."""
    parts = {each.repository: each for each in listed()}
    entries = watch_public.scripts()
    assert len({each.name for each in entries}) == len(entries) >= 30
    for each in entries:
        assert bool(each.commit) != (each.repository in parts), each.name
        assert each.commit or parts[each.repository].part == "looked at"
        assert {one["kind"] for one in each.data} <= set(watch_data.KINDS)
        for finding in each.findings:
            assert finding["verdict"] in ("true", "noise"), each.name
            assert finding["reason"]


@pytest.mark.parametrize(
    ("kind", "options", "files"),
    [
        ("text", {"lines": 2}, 1),
        ("images", {"classes": 2, "each": 2, "size": 4}, 4),
        ("series", {"rows": 5}, 1),
        ("waves", {"files": 2, "seconds": 0.01}, 2),
        ("tokens", {"count": 50}, 3),
        ("molecules", {"name": "M", "graphs": 4}, 4),
        ("ratings", {"users": 2, "each": 3}, 1),
        ("sentence pairs", {"rows": 4}, 1),
        ("array", {"shape": [2, 3, 4]}, 1),
    ],
)
def test_made_up_data_is_the_same_each_time(
    kind: str, options: dict[str, Any], files: int, tmp_path: Path
) -> None:
    for name in ("one", "other"):
        watch_data.write_data(tmp_path / name, kind, "data/made_up", **options)
    one, other = files_in(tmp_path / "one"), files_in(tmp_path / "other")
    assert one == other
    assert len(one) == files


def test_results_of_other_scripts_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: dict[str, Any] = {}
    monkeypatch.setattr(watch_public, "RESULTS", tmp_path)
    monkeypatch.setattr(watch_public, "save_results", lambda name, told: written.update(told))
    names = [each.name for each in watch_public.scripts()[:2]]
    result = {"updates": 5, "status": 0, "same": True, "findings": [], "not_found_again": []}
    before = {"results": [{**result, "script": names[1]}]}
    (tmp_path / "watch_public.json").write_text(json.dumps(before))
    watch_public.keep({**result, "script": names[0]})
    assert [each["script"] for each in written["results"]] == names
    assert (written["scripts"], written["same"], written["updates"]) == (2, 2, 10)
