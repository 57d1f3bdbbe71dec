"""What was run: the patch of the code, the digest of the data, the history of a resumed run."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from trueloop.run import Run, environment, write_report
from trueloop.run.code_changes import git_facts, uncommitted_changes
from trueloop.run.data_digest import data_facts
from trueloop.run.lineage import evaluations_of, note_resume, parts_of

Git = Callable[..., str]
OPTIONS = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "protocol.file.allow=always"]


@pytest.fixture
def git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Git:
    """Runs git in a new repository, which is the working directory, without a first commit."""

    def run(*words: str | Path) -> str:
        done = subprocess.run(["git", *OPTIONS, *words], capture_output=True, text=True, check=True)
        return done.stdout

    code = tmp_path / "code"
    code.mkdir()
    monkeypatch.chdir(code)
    run("init", "-q")
    return run


def commit(git: Git) -> None:
    git("add", ".")
    git("commit", "-q", "-m", "x")


def test_the_patch_brings_the_changes_back(tmp_path: Path, git: Git) -> None:
    """Of tracked files, text and binary, and of Python files that git does not track; also with a
    configuration whose diffs are not patches."""
    Path("train.py").write_text("lr = 1\n")
    Path("logo.bin").write_bytes(bytes(range(256)))
    Path("windows.py").write_bytes(b"a = 1\r\nb = 2\r\n")
    commit(git)
    run = Run.create(tmp_path / "clean", config={})
    assert not (run.path / "changes.patch").exists()
    for name, value in {
        "diff.noprefix": "true",
        "color.diff": "always",
        "diff.external": "true",
    }.items():
        git("config", name, value)
    Path("train.py").write_text("lr = 2  # größer\n")
    Path("logo.bin").write_bytes(bytes(range(255, -1, -1)))
    Path("windows.py").write_bytes(b"a = 1\r\nb = 3\r\nc = 4\r")
    Path("task.py").write_text("new = 1\n")
    Path("notes.txt").write_text("not code")
    objects = git("count-objects")
    index = hashlib.sha256(Path(".git/index").read_bytes()).hexdigest()

    run = Run.create(tmp_path / "changed", config={})

    assert hashlib.sha256(Path(".git/index").read_bytes()).hexdigest() == index
    assert git("count-objects") == objects
    assert run.environment["git"]["modified"] is True
    assert run.environment["git"]["untracked"] == ["task.py"]
    patch = run.path / "changes.patch"
    assert b"notes.txt" not in patch.read_bytes()
    git("config", "--unset", "diff.noprefix")
    git("checkout", "-q", ".")
    Path("task.py").unlink()
    git("apply", patch)
    assert Path("train.py").read_text() == "lr = 2  # größer\n"
    assert Path("logo.bin").read_bytes() == bytes(range(255, -1, -1))
    assert Path("windows.py").read_bytes() == b"a = 1\r\nb = 3\r\nc = 4\r"
    assert Path("task.py").read_text() == "new = 1\n"


def test_a_repository_without_commits(git: Git) -> None:
    facts = {"folder": str(Path.cwd()), "commit": None}
    assert git_facts() == {**facts, "modified": False}
    assert uncommitted_changes() == b""
    Path("task.py").write_text("new = 1\n")
    Path("staged.txt").write_text("staged\n")
    git("add", "staged.txt")
    assert git_facts() == {**facts, "modified": True, "untracked": ["task.py"]}
    patch = uncommitted_changes()
    assert b"+new = 1" in patch
    assert b"+staged" in patch


@pytest.mark.parametrize("name", ["a\nb", "HEAD", "größer"])
def test_the_folder_and_the_commit_from_within(
    name: str, git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Path.cwd() / name / "sub"
    folder.mkdir(parents=True)
    monkeypatch.chdir(folder.parent)
    git("init", "-q")
    Path("HEAD").write_text("a")
    facts = {"folder": str(folder.parent), "modified": False}
    for here in (folder.parent, folder):
        monkeypatch.chdir(here)
        assert git_facts() == {**facts, "commit": None}
    monkeypatch.chdir(folder.parent)
    commit(git)
    facts["commit"] = git("rev-parse", "--verify", "HEAD").strip()
    for here in (folder.parent, folder):
        monkeypatch.chdir(here)
        assert git_facts() == facts


def test_no_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert git_facts() is None
    assert uncommitted_changes() == b""
    monkeypatch.setenv("PATH", "")
    assert git_facts() is None
    assert not (Run.create(tmp_path / "run", config={}).path / "changes.patch").exists()


def test_large_files_are_left_out_and_a_long_patch_is_cut(
    git: Git, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("train.py").write_text("lr = 1\n")
    Path("weights.bin").write_bytes(os.urandom(1_200_000))
    Path("gone.bin").write_bytes(os.urandom(2_100_000))
    commit(git)
    Path("train.py").write_text("lr = 2\n")
    Path("weights.bin").write_bytes(os.urandom(1_200_000))
    Path("gone.bin").unlink()
    Path("dump.py").write_text("x = 1\n" * 400_000)
    facts = git_facts()
    assert facts is not None
    assert facts["not_in_patch"] == ["dump.py", "gone.bin", "weights.bin"]
    patch = uncommitted_changes()
    assert b"+lr = 2" in patch
    assert len(patch) < 1000
    monkeypatch.setattr(sys.modules["trueloop.run.code_changes"], "MOST_PATCH", 60)
    assert re.search(rb"\n# cut: \d+ of \d+ bytes\n$", uncommitted_changes())


def test_changes_within_a_submodule(tmp_path: Path, git: Git) -> None:
    library = tmp_path / "library"
    git("init", "-q", library)
    (library / "net.py").write_text("width = 1\n")
    git("-C", library, "add", ".")
    git("-C", library, "commit", "-q", "-m", "x")
    git("submodule", "--quiet", "add", library, "lib")
    commit(git)
    Path("lib/net.py").write_text("width = 2\n")
    assert (git_facts() or {})["modified"] is True
    patch = tmp_path / "p.patch"
    patch.write_bytes(uncommitted_changes())
    git("-C", "lib", "checkout", "-q", ".")
    git("apply", patch)
    assert Path("lib/net.py").read_text() == "width = 2\n"


def test_a_resumed_run_keeps_the_changes_of_each_part(tmp_path: Path, git: Git) -> None:
    Path("train.py").write_text("lr = 1\n")
    commit(git)
    Path("train.py").write_text("lr = 2\n")
    run = Run.create(tmp_path / "run", config={}, environment=environment())
    first = (run.path / "changes.patch").read_bytes()

    note_resume(run, environment(), 10)  # nothing has changed
    assert "resumed" not in run.environment
    Path("train.py").write_text("lr = 3\n")
    note_resume(run, environment(), 20)
    git("checkout", "-q", ".")
    note_resume(run, environment(), 30)
    Path("train.py").write_text("lr = 2\n")
    note_resume(run, environment(), 40)  # as it was at first
    commit(git)
    note_resume(run, environment(), 50)
    note_resume(run, environment(), 60)

    parts = run.environment["resumed"]
    found = [(part["update"], part.get("patch")) for part in parts]
    assert found == [(20, "changes-2.patch"), (30, None), (40, "changes.patch"), (50, None)]
    assert (run.path / "changes.patch").read_bytes() == first
    assert b"+lr = 3" in (run.path / "changes-2.patch").read_bytes()
    page = write_report(run).read_text()
    text = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page))
    one, two = (run.environment["git"]["commit"][:10], parts[-1]["git"]["commit"][:10])
    for line in (
        f"from update 0 commit {one}, with the uncommitted changes of changes.patch",
        f"from update 20 commit {one}, with the uncommitted changes of changes-2.patch",
        f"from update 30 commit {one} ",
        f"from update 50 commit {two}",
    ):
        assert line in text, text[-3000:]
    assert "from update 60" not in text

    run.begin_again(environment())
    assert not list(run.path.glob("changes*.patch"))


@pytest.mark.parametrize("damaged", ["[]", '{"data": "x"}', '{"scores": [1]}', '{"out": 1}', "{"])
def test_damaged_records_are_skipped(tmp_path: Path, damaged: str) -> None:
    later = [{"update": "x", "ranks": 2}, {"update": 7, "ranks": 4}, 1]
    run = Run.create(tmp_path / "run", config={}, environment={"ranks": 1, "resumed": later})
    for name, text in (("first", '{"scores": {"val": 1.0}}'), ("second", damaged)):
        (run.path / "evaluations" / name).mkdir(parents=True)
        (run.path / "evaluations" / name / "evaluation.json").write_text(text)
    assert [part["update"] for part in parts_of(run.environment)] == [0, 7]
    assert list(evaluations_of(run)) == ["first"]
    page = write_report(run).read_text()
    assert "first.val" in page
    assert "second." not in page


def test_a_run_that_begins_again_has_the_changes_of_then(tmp_path: Path, git: Git) -> None:
    Path("train.py").write_text("lr = 1\n")
    commit(git)
    run = Run.create(tmp_path / "run", config={})
    Path("train.py").write_text("lr = 2\n")
    run.begin_again(environment())
    assert b"+lr = 2" in (run.path / "changes.patch").read_bytes()


def test_the_digest_of_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "data"
    (folder / "b").mkdir(parents=True)
    (folder / "a.csv").write_bytes(b"1,2\n")
    (folder / "b" / "c.csv").write_bytes(b"3\n")
    facts = data_facts(folder)
    listing = b"a.csv\0" + b"4\0" + b"b/c.csv\0" + b"2\0"
    digest = hashlib.sha256(listing + b"1,2\n3\n").hexdigest()
    expected = {"path": str(folder.resolve()), "files": 2, "bytes": 6, "digest": digest}
    assert facts == {**expected, "of": "contents"}
    assert json.loads(json.dumps(facts)) == facts
    (folder / "b" / "c.csv").write_bytes(b"4\n")
    assert (data_facts(folder) or {})["digest"] != digest
    one = data_facts(folder / "a.csv")
    assert one is not None
    assert one["digest"] == hashlib.sha256(b"\0" + b"4\0" + b"1,2\n").hexdigest()
    assert data_facts(None) is data_facts(tmp_path / "absent") is None

    module = sys.modules["trueloop.run.data_digest"]
    monkeypatch.setattr(module, "_BLOCK", 2)
    monkeypatch.setattr(module, "_BLOCKS", 2)
    sampled = hashlib.sha256(listing + b"1," + b"\n").hexdigest()
    assert data_facts(folder) == {**expected, "digest": sampled, "of": "samples of the contents"}
    monkeypatch.setattr(module, "_MOST_READ", 1)
    assert (data_facts(folder) or {})["digest"] == hashlib.sha256(listing).hexdigest()
    monkeypatch.setattr(module, "_MOST_LISTED", 1)
    assert (data_facts(folder) or {"digest": 0})["digest"] is None
