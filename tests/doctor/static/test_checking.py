"""From paths to what is told: once a fault, where it is asked for, in order."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from trueloop.doctor.config import Configs
from trueloop.doctor.report.terminal import as_text
from trueloop.doctor.static.checking import CheckResult, check
from trueloop.doctor.static.fixes.fix_files import mend
from trueloop.doctor.static.inputs import examine as examine_module
from trueloop.doctor.static.inputs.cache import Cache
from trueloop.errors import ConfigError

LOOP = """\
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(data, batch_size=4, shuffle=True):
    optimizer.zero_grad()
    criterion(model(x), y).backward()
    optimizer.step()
"""
CORPUS = Path(__file__).parents[1] / "corpus" / "TL001"


def write(name: str, text: str) -> None:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_text(text)


def told(outcome: CheckResult) -> list[str]:
    return [
        f"{outcome.name(each.place.path)}:{each.place.line} {each.code}"
        for each in outcome.findings
    ]


@pytest.mark.usefixtures("planted")
class TestWithPlantedFaults:
    def test_by_place(self) -> None:
        write("b.py", "x = 1\nTL102(); TL101()\nTL203()\n")
        write("a/c.py", "TL805()\n")
        assert told(check(["b.py", "."], Configs())) == [
            "a/c.py:1 TL805", "b.py:2 TL102", "b.py:2 TL101", "b.py:3 TL203",
        ]  # fmt: skip

    def test_a_fault_in_a_file_that_two_use_is_told_once(self) -> None:
        write("helper.py", "TL101()\n")
        write("a.py", "import helper\n")
        write("b.py", "import helper\n")
        assert told(check(["."], Configs())) == ["helper.py:1 TL101"]
        assert told(check(["a.py", "b.py"], Configs())) == ["helper.py:1 TL101"]

    def test_what_speaks_for_a_file_speaks_for_it_wherever_it_is_used(self) -> None:
        write("a.py", "import helper\n")
        write("helper.py", "TL101()  # trueloop: ignore[TL101]\nTL102()\n")
        assert told(check(["a.py"], Configs())) == ["helper.py:2 TL102"]
        assert told(check(["a.py"], Configs(exclude=("helper.py",)))) == []
        write("pyproject.toml", '[tool.trueloop]\nper-file-ignores = { "helper.py" = ["TL102"] }\n')
        assert told(check(["a.py"], Configs())) == []

    def test_comments_are_judged_in_files_that_were_read_whole(self) -> None:
        write("a.py", "import helper\nx = 1  # trueloop: ignore\n")
        write("helper.py", "x = 1  # trueloop: ignore\n")
        assert told(check(["a.py"], Configs())) == ["a.py:2 TL001"]
        assert told(check(["."], Configs())) == ["a.py:2 TL001", "helper.py:1 TL001"]
        assert told(check(["."], Configs(ignore=frozenset({"TL001"})))) == []
        write("a.py", "x = 1  # trueloop: ignore\nprint 'two'\n")
        assert told(check(["a.py"], Configs())) == []

    def test_files_are_called_as_they_were_given(self, tmp_path: Path) -> None:
        write("pkg/a.py", "import helper\nTL101()\n")
        write("pkg/helper.py", "TL102()\n")
        assert told(check(["./pkg/a.py"], Configs())) == [
            "pkg/a.py:2 TL101",
            "pkg/helper.py:1 TL102",
        ]
        absolute = os.path.join(tmp_path, "pkg", "a.py")
        assert told(check([absolute], Configs()))[0] == f"{absolute}:2 TL101"

    def test_one_bad_file_does_not_hold_up_the_others(self) -> None:
        write("a.py", "TL101()\n")
        write("b.py", "print 'two'\n")
        Path("c.py").write_bytes(b"\xff")
        outcome = check(["."], Configs())
        assert told(outcome) == ["a.py:1 TL101"]
        assert [outcome.name(each.path) for each in outcome.problems] == ["b.py", "c.py"]

    def test_a_path_that_is_not_there_stops_it_all(self) -> None:
        with pytest.raises(ConfigError, match=r"no such file or folder: b\.py: check the path"):
            check([".", "b.py"], Configs())


def test_a_file_that_others_import_is_read_again_when_it_has_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write("train.py", "import torch\nfrom net import model\n" + LOOP)
    write("net.py", "import torch\nmodel = torch.nn.Linear(4, 1)\n")
    assert told(check(["train.py"], Configs())) == []
    write("net.py", "from torch.nn import *\nmodel = Sequential(Linear(4, 3), Softmax(dim=1))\n")
    assert [each.code for each in check(["train.py"], Configs()).findings] == ["TL401"]


@pytest.mark.parametrize("path", sorted(CORPUS.glob("*.py")), ids=lambda path: path.stem)
def test_the_corpus_of_unused_ignores(path: Path) -> None:
    """Here and not with the other rules' corpus: it takes a whole file, not a program alone."""
    marked = [
        number
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if "# <- TL001" in line
    ]
    outcome = check([str(path)], Configs())
    assert [(each.code, each.place.line) for each in outcome.findings] == [
        ("TL001", line) for line in marked
    ]
    assert bool(marked) == path.name.startswith("bad")


FENCE = "```python\nimport torch\nfor x in loader:\n    loss.backward()\n    opt.step()\n```\n"


def test_the_blocks_of_a_document_share_the_steps_of_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(examine_module, "STEPS_A_FILE", 2_000)
    write("guide.md", FENCE * 200)
    first = check(["guide.md"], Configs(), cache=Cache(tmp_path / "cache"))
    (unread,) = first.unread
    assert 0 < unread.line < 1_000
    assert unread.line % 6 == 2
    assert f"the code blocks from line {unread.line} on were not begun" in unread.message
    again = check(["guide.md"], Configs(), cache=Cache(tmp_path / "cache"))
    assert (again.unread, again.findings) == (first.unread, first.findings)


def test_comments_by_the_thousand_are_judged_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write("a.py", "x = 1  # trueloop: ignore[TL101]\n" * 8_000)
    outcome = check(["a.py"], Configs())
    assert len(outcome.findings) == 8_000


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="a system without FIFOs")
class TestSpecialFiles:
    """A FIFO is named, and nobody waits for it."""

    @pytest.fixture(autouse=True)
    def _folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(tmp_path)

    @pytest.mark.parametrize("name", ["pipe.py", "pipe.ipynb", "pipe.md", "pipe"])
    def test_given_itself(self, name: str) -> None:
        os.mkfifo(name)
        outcome = check([name], Configs(), cache=Cache(Path("cache")))
        assert [each.message for each in outcome.problems] == [
            "is a FIFO, not a regular file: leave it out"
        ]

    def test_a_device_and_a_link_to_one(self) -> None:
        os.symlink("/dev/zero", "zero.py")
        for name in ("/dev/null", "zero.py"):
            (problem,) = check([name], Configs()).problems
            assert problem.message == "is a character device, not a regular file: leave it out"

    def test_in_a_folder_it_is_passed_over(self) -> None:
        os.mkfifo("pipe.py")
        assert check(["."], Configs()).files == 0

    def test_imported(self) -> None:
        os.mkfifo("helper.py")
        os.mkdir("package")
        os.mkfifo("package/__init__.py")
        write("train.py", "import torch\nimport helper, package\nhelper.f()\npackage.f()\n")
        cache = Cache(Path("cache"))
        for _ in range(2):
            outcome = check(["train.py"], Configs(), cache=cache)
            assert (outcome.findings, outcome.problems) == ([], [])

    def test_the_configuration(self) -> None:
        os.mkfifo("pyproject.toml")
        write("train.py", "import torch\n")
        with pytest.raises(ConfigError, match="it is a FIFO, not a regular file"):
            check(["train.py"], Configs())

    def test_an_entry_of_the_cache(self) -> None:
        write("train.py", "import torch\n")
        cache = Cache(Path("cache"))
        check(["train.py"], Configs(), cache=cache)
        (entry,) = Path("cache").glob("*.json")
        entry.unlink()
        os.mkfifo(entry)
        assert check(["train.py"], Configs(), cache=cache).problems == []

    def test_in_place_of_a_file_that_was_checked(self) -> None:
        write("train.py", "import torch\nfrom net import model\n" + LOOP)
        write("net.py", "from torch.nn import *\nmodel = Sequential(Linear(4, 3), Softmax(1))\n")
        outcome = check(["train.py"], Configs())
        os.unlink("train.py")
        os.mkfifo("train.py")
        assert "TL401" in as_text(outcome)
        assert mend(outcome, Configs(), write=True).fixed == []
