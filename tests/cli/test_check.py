"""`trueloop check`: what it prints where, and its exit status."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Command
from planted_faults import check_text
from trueloop.doctor import static

FAULTY = """\
import torch
from torch import nn

model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(10):
    loss = model(torch.randn(8, 4)).square().mean()
    loss.backward()
    optimizer.zero_grad()
    optimizer.step()
"""


@pytest.fixture(autouse=True)
def _cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))
    monkeypatch.delenv("FORCE_COLOR", raising=False)


@pytest.fixture
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(static, "check_text", check_text)


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def test_a_fault_of_the_real_kind_is_found(command: Command) -> None:
    write("train.py", FAULTY)
    found = command("check", "train.py", "--format", "json")
    assert found.status == 1
    (finding,) = json.loads(found.out)["findings"]
    assert (finding["code"], finding["path"], finding["line"]) == ("TL101", "train.py", 9)
    assert found.err == ""


def test_the_fault_is_mended_and_then_gone(command: Command) -> None:
    write("train.py", FAULTY)
    shown = command("check", "train.py", "--diff")
    assert shown.status == 1
    assert "@@\n for step in range(10):\n" in shown.out
    assert Path("train.py").read_text() == FAULTY
    fixed = command("check", "train.py", "--fix")
    assert fixed.status == 0, fixed.out
    assert "fixed train.py:9  TL101" in fixed.out
    assert command("check", "train.py", "--no-cache").status == 0


@pytest.mark.usefixtures("planted")
class TestWithPlantedFaults:
    @pytest.mark.parametrize(
        ("text", "status"),
        [("x = 1\n", 0), ("x = 1  # trueloop: ignore\n", 0), ("TL203()\n", 1), ("TL101()\n", 1),
         ("x = (\n", 2), ("", 0)],
        ids=["nothing", "advice", "warning", "error", "unreadable", "empty"],
    )  # fmt: skip
    def test_the_exit_status(self, command: Command, text: str, status: int) -> None:
        write("a.py", text)
        assert command("check", "a.py").status == status
        assert command("check", "a.py").status == status  # from the cache
        assert command("check", ".", "--format", "json").status == status

    def test_findings_outweigh_files_that_cannot_be_read(self, command: Command) -> None:
        write("a.py", "TL101()\n")
        write("b.py", "print 'two'\n")
        found = command("check", ".")
        assert found.status == 1
        assert found.complaint.startswith("b.py:1: does not parse as Python 3")
        assert "a.py:1:1  TL101 error" in found.out
        assert found.out.endswith("2 files checked: 1 error; 1 could not be checked in full\n")

    def test_folders_without_python_hold_nothing(self, command: Command) -> None:
        found = command("check", ".")
        assert (found.status, found.out) == (
            0,
            "0 files checked: no Python file, notebook or Markdown file is there,"
            " or all are excluded\n",
        )

    def test_a_file_that_cannot_be_read_is_not_called_clean(self, command: Command) -> None:
        write("b.py", "print 'two'\n")
        found = command("check", "b.py")
        assert (found.status, found.out) == (
            2,
            "1 file checked: nothing found, but 1 could not be checked in full\n",
        )

    @pytest.mark.parametrize(
        ("words", "complaint"),
        [
            ([], "PATHS is missing"),
            (["gone.py"], "no such file or folder: gone.py: check the path"),
            (["a.py", "--select", "TL10l"], "--select: unknown rule 'TL10l': did you mean TL101"),
            (["a.py", "--select", ""], "--select names no rule"),
            (["a.py", "--ignore", "missing-zerograd"], "did you mean TL102 (missing-zero-grad)?"),
            (["a.py", "--format", "jsn"], "unknown format 'jsn': did you mean 'json'?"),
            (["a.py", "--jobs", "0"], "--jobs must be a whole number from 1"),
            (["a.py", "--jobs", "two"], "--jobs must be a whole number from 1"),
            (["a.py", "--diff", "--format", "json"], "leave out one of them"),
            (["a.py", "--slect", "TL1"], "unknown option --slect: did you mean '--select'"),
        ],
    )
    def test_a_mistake_is_one_line(
        self, command: Command, words: list[str], complaint: str
    ) -> None:
        write("a.py", "")
        found = command("check", *words)
        assert found.status == 2
        assert found.out == ""
        assert complaint in found.complaint

    def test_rules_and_files_can_be_chosen(self, command: Command) -> None:
        write("a.py", "TL101()\nTL203()\n")
        write("old/b.py", "TL101()\n")

        def codes(*words: str) -> list[str]:
            told = json.loads(command("check", *words, ".", "--format=json").out)
            return [f"{each['path']} {each['code']}" for each in told["findings"]]

        assert codes() == ["a.py TL101", "a.py TL203", "old/b.py TL101"]
        assert codes("--select", "TL2") == ["a.py TL203"]
        assert codes("--ignore", "TL101,TL9") == ["a.py TL203"]
        assert codes("--exclude", "old, *_pb2.py") == ["a.py TL101", "a.py TL203"]
        write("pyproject.toml", '[tool.trueloop]\nselect = ["TL2"]\nexclude = ["old"]\n')
        assert codes() == ["a.py TL203"]
        assert codes("--select", "TL101") == ["a.py TL101"]
        assert codes("--select=TL1", "old/b.py") == ["a.py TL101", "old/b.py TL101"]
        assert codes("--select=TL1", "--force-exclude", "old/b.py") == ["a.py TL101"]

    def test_a_broken_configuration_is_one_line(self, command: Command) -> None:
        write("a.py", "")
        write("pyproject.toml", "[tool.trueloop]\nselct = []\n")
        found = command("check", ".")
        assert found.status == 2
        assert "unknown key 'selct': did you mean 'select'" in found.complaint

    def test_the_cache_lies_beside_the_project_and_can_be_left_out(self, command: Command) -> None:
        write("a.py", "TL101()\n")
        write("pyproject.toml", "")
        command("check", "a.py", "--no-cache")
        assert not Path(".trueloop_cache").exists()
        first = command("check", "a.py")
        assert Path(".trueloop_cache").is_dir()
        assert command("check", "a.py").out == first.out

    @pytest.mark.parametrize("form", ["sarif", "github"])
    def test_forms_for_code_hosts(self, command: Command, form: str) -> None:
        write("a.py", "TL101()\n")
        found = command("check", "a.py", "--format", form)
        assert found.status == 1
        if form == "sarif":
            assert json.loads(found.out)["runs"][0]["results"][0]["ruleId"] == "TL101"
        else:
            assert found.out.startswith("::error file=a.py,title=TL101 zero-grad")
        write("a.py", "")
        assert command("check", "a.py", "--format", form).status == 0

    def test_diff_prints_the_diff_alone_and_changes_nothing(self, command: Command) -> None:
        write("a.py", "x = 1\nTL101('delete')\nTL102()\n")
        found = command("check", "a.py", "--diff")
        assert found.status == 1
        assert found.out.split("\n")[:5] == [
            "--- a/a.py", "+++ b/a.py", "@@ -1,3 +1,2 @@", " x = 1", "-TL101('delete')",
        ]  # fmt: skip
        assert "--fix would fix 1 finding in 1 file" in found.err
        assert Path("a.py").read_text() == "x = 1\nTL101('delete')\nTL102()\n"

    def test_fix_says_what_it_did_and_what_is_left(self, command: Command) -> None:
        write("a.py", "x = 1\nTL101('delete')\nTL102()\n")
        found = command("check", "a.py", "--fix")
        assert found.status == 1
        assert found.out.startswith(
            "fixed a.py:2  TL101  zero-grad-after-backward\nfixed 1 finding in 1 file\n\n"
            "a.py:2:1  TL102 error"
        )
        assert Path("a.py").read_text() == "x = 1\nTL102()\n"
        again = command("check", "a.py", "--fix")
        assert "no finding has a safe fix" in again.out
        told = command("check", "a.py", "--fix", "--format", "json")
        assert json.loads(told.out)["fixed"] == []

    def test_colours_are_for_terminals(
        self, command: Command, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        write("a.py", "TL101()\n")
        assert "\x1b" not in command("check", "a.py").out
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert "\x1b[1;31m" in command("check", "a.py").out
        monkeypatch.setenv("NO_COLOR", "1")
        assert "\x1b" not in command("check", "a.py").out


def in_shell(*words: str, **environment: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "trueloop", *words],
        capture_output=True,
        env={**os.environ, **environment},
        check=False,
    )


def test_what_an_old_terminal_cannot_say_is_escaped() -> None:
    Path("é.py").write_text("x = (  # 日本\n", "utf-8")
    found = in_shell("check", "é.py", PYTHONIOENCODING="ascii:strict")
    assert found.returncode == 2
    assert found.stderr.startswith(b"\\xe9.py:1: does not parse")


@pytest.mark.parametrize("words", [["check", "a.py"], ["check", "--help"], ["explain"]])
def test_torch_is_not_imported(words: list[str]) -> None:
    write("a.py", FAULTY)
    code = (
        "import sys\nfrom trueloop.cli import main\n"
        f"main({words})\n"
        "heavy = {'torch', 'numpy', 'rich', 'matplotlib', 'polars', 'torchmetrics'}\n"
        "sys.exit(f'imported: {heavy & set(sys.modules)}' if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
