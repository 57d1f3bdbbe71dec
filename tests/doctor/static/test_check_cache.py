"""The cache gives what was found before, and never anything else."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from planted_faults import check_text
from trueloop.doctor import static
from trueloop.doctor.model.findings import Delete, Finding, Insert, Location, Move, Related, Replace
from trueloop.doctor.static.inputs import cache as cache_module
from trueloop.doctor.static.inputs.cache import Cache, Examined, cache_folder, digest
from trueloop.doctor.static.inputs.discovery import FileProblem, Unread
from trueloop.doctor.static.inputs.examine import examine_all


@pytest.fixture(autouse=True)
def _workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Which files the checker was asked about."""
    asked: list[str] = []

    def noted(text: str, path: str, *, steps: int, above: int) -> Any:
        asked.append(os.path.basename(path))
        return check_text(text, path)

    monkeypatch.setattr(static, "check_text", noted)
    return asked


def write(name: str, text: str) -> str:
    Path(name).write_text(text)
    return os.path.abspath(name)


def test_all_of_it_comes_back() -> None:
    place = Location("/a/b.py", 3, 5, 3, 9, "train")
    other = Location("/a/c.py", 1)
    finding = Finding(
        "TL101",
        "zero-grad-after-backward",
        "error",
        place,
        "é",
        None,
        (Related(other, "there"),),
        (
            Move(place, other, "after"),
            Insert("x\n", place, "before"),
            Replace(place, "{}"),
            Delete(place),
        ),
        without_callers=True,
    )
    found = Examined(
        "/a/b.py",
        digest(b"x"),
        (finding,),
        (FileProblem("/a/b.py", 0, "why"),),
        (("/nowhere", ""),),
        ignores=True,
        unread=Unread("/a/b.py", 7, "train", "not read to its end: …"),
        settled=(("TL201", "/a/c.py", 4),),
    )
    cache = Cache(Path("cache"))
    cache.put(found)
    again = cache.get("/a/b.py", digest(b"x"))
    assert again == found
    assert again is not None
    assert again.findings[0].without_callers
    assert [type(each) for each in again.findings[0].remedies] == [Move, Insert, Replace, Delete]
    assert cache.get("/a/b.py", digest(b"y")) is None
    assert cache.get("/a/c.py", digest(b"x")) is None


def test_a_file_is_read_again_when_it_or_what_it_uses_has_changed(reads: list[str]) -> None:
    path = write("train.py", "import helper\nTL101()\n")

    def codes() -> list[str]:
        reads.clear()
        (found,) = examine_all([path], cache=Cache(Path("cache")))
        return [each.code for each in found.findings]

    assert (codes(), reads) == (["TL101"], ["train.py"])
    assert (codes(), reads) == (["TL101"], [])
    write("helper.py", "TL805()\n")  # what was looked for and was not there
    assert (codes(), reads) == (["TL101", "TL805"], ["train.py"])
    assert (codes(), reads) == (["TL101", "TL805"], [])
    write("helper.py", "x = 1\n")
    assert (codes(), reads) == (["TL101"], ["train.py"])
    write("train.py", "x = 1\n")
    assert (codes(), reads) == ([], ["train.py"])


def test_another_checker_starts_anew(reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("a.py", "TL101()\n")
    examine_all([path], cache=Cache(Path("cache")))
    monkeypatch.setattr(cache_module, "checker_version", lambda: "another")
    examine_all([path], cache=Cache(Path("cache")))
    assert reads == ["a.py", "a.py"]


def _half(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _changed(**other: Any) -> Any:
    return lambda data: json.dumps({**json.loads(data), **other}).encode()


@pytest.mark.parametrize(
    "damage",
    [
        _half,
        lambda data: b"",
        lambda data: b"\xff" + data,
        lambda data: b"[" * 100_000,
        lambda data: b"[]",
        _changed(findings=3),
        _changed(findings=[[]]),
        _changed(findings=[["TL101", "error", ["a", "1", 1, 1, 1, ""], "m", None, [], []]]),
        _changed(findings=[["TL999", "error", ["a", 1, 1, 1, 1, ""], "m", None, [], []]]),
        _changed(findings=[["TL101", "fatal", ["a", 1, 1, 1, 1, ""], "m", None, [], []]]),
        _changed(findings=[["TL101", "error", ["a", 1, 1, 1, 1, ""], "m", None, [], [["Run"]]]]),
        _changed(problems=[["a", "b", "c"]]),
        _changed(followed=[3]),
        _changed(unread=3),
        _changed(unread=["a", 1, ""]),
    ],
    ids=["half", "empty", "bytes", "nested", "list", "number", "short", "line", "code", "severity",
         "remedy", "problem", "followed", "unread", "unread short"],
)  # fmt: skip
def test_a_damaged_entry_counts_for_nothing(damage: Any, reads: list[str]) -> None:
    path = write("a.py", "TL101()\n")
    before = examine_all([path], cache=Cache(Path("cache")))
    (entry,) = Path("cache").glob("*.json")
    entry.write_bytes(damage(entry.read_bytes()))
    assert examine_all([path], cache=Cache(Path("cache"))) == before
    assert reads == ["a.py", "a.py"]
    assert examine_all([path], cache=Cache(Path("cache"))) == before
    assert reads == ["a.py", "a.py"]


def test_where_nothing_can_be_written_all_is_as_without_a_cache(reads: list[str]) -> None:
    path = write("a.py", "TL101()\n")
    write("file", "")
    for _ in range(2):
        (found,) = examine_all([path], cache=Cache(Path("file/cache")))
        assert [each.code for each in found.findings] == ["TL101"]
    assert reads == ["a.py", "a.py"]


def test_it_lies_next_to_pyproject_or_in_the_users_own_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert cache_folder() == Path("/somewhere/trueloop/check")
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == Path("/home/someone/.cache/trueloop/check")
    write("pyproject.toml", "")
    Path("deep").mkdir()
    monkeypatch.chdir("deep")
    assert cache_folder() == tmp_path / ".trueloop_cache"


def test_nothing_is_left_beside_the_entries(reads: list[str]) -> None:
    examine_all([write("a.py", "TL101()\n")], cache=Cache(Path("cache")))
    assert sorted(path.suffix or path.name for path in Path("cache").iterdir()) == [
        ".TAG", ".gitignore", ".json",
    ]  # fmt: skip
