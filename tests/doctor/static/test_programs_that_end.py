"""Programs that Python ends before they train are named, and what comes after is not judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from trueloop.doctor.config import Configs
from trueloop.doctor.static.checking import check

PROGRAM = """\
{first}
import argparse
import torch


def settings(args):
    {body}


parser = argparse.ArgumentParser({parser})
parser.add_argument("--epochs", "-e", type=int, default=3)
{option}
args = parser.parse_args()
{named} = settings(args)
net = torch.nn.Linear(3, 1)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for epoch in range(args.epochs):
    for x in torch.randn(20, 4, 3):
        net(x).square().mean().backward()
        optimizer.step()
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def ends(**parts: str) -> str:
    """Why the program ends; empty where its fault was found."""
    every = {"first": "", "body": "args.seed = 0", "parser": "", "option": "", "named": "args.none"}
    Path("main.py").write_text(PROGRAM.format(**{**every, **parts}))
    outcome = check(["main.py"], Configs())
    codes = [each.code for each in outcome.findings]
    assert codes == ([] if outcome.unread else ["TL102"])
    return outcome.unread[0].message.split(": ", 2)[2] if outcome.unread else ""


@pytest.mark.parametrize(
    ("option", "why"),
    [
        ('type="store_true"', '`type="store_true"`'),
        ('type="int", default=2', '`type="int"`'),
        ('type=bool, action="store_true"', '`type` beside `action="store_true"`'),
        ('nargs=1, action="store_false"', '`nargs` beside `action="store_false"`'),
        ('type="bool", default=True', ""),  # which a program may register
        ('action="store_true", default=True', ""),
        ('type=int, default="2"', ""),
    ],
)
def test_an_option_that_argparse_refuses(option: str, why: str) -> None:
    found = ends(option=f'parser.add_argument("--more", {option})')
    assert found == (f"argparse refuses {why}" if why else "")


@pytest.mark.parametrize(
    ("parser", "option", "why"),
    [
        ("", 'parser.add_argument("-e", "--every", type=int)', "`-e` a second time"),
        ("", 'parser.add_argument("-h", "--hidden", type=int)', "`-h` a second time"),
        ("add_help=False", 'parser.add_argument("-h", "--hidden", type=int)', ""),
        ('conflict_handler="resolve"', 'parser.add_argument("-e", "--every", type=int)', ""),
        ("", 'other = argparse.ArgumentParser()\nother.add_argument("-e", type=int)', ""),
        ("", 'for name in "ab":\n    parser.add_argument(f"--{name}", type=int)', ""),
        ("", 'try:\n    parser.add_argument("-e")\nexcept argparse.ArgumentError:\n    pass', ""),
    ],
)
def test_an_option_that_is_added_twice(parser: str, option: str, why: str) -> None:
    assert ends(parser=parser, option=option) == (f"argparse refuses {why}" if why else "")


@pytest.mark.parametrize(
    ("body", "named", "ending"),
    [
        ("args.seed = 0", "seed, rate", True),
        ("args.seed = 0\n    return", "seed, rate", True),
        ("args.seed = 0\n    return 1, 2", "seed, rate", False),
        ("args.seed = 0\n    yield 1\n    yield 2", "seed, rate", False),
        ("pass", "seed, rate", False),  # a placeholder
        ("args.seed = 0", "nothing", False),
    ],
)
def test_none_that_is_unpacked(body: str, named: str, ending: bool) -> None:
    why = "`settings` returns None, which is unpacked into 2 names"
    assert ends(body=body, named=named) == (why if ending else "")


@pytest.mark.parametrize(
    ("imported", "folder", "ending"),
    [
        ("from tools.plots import show", "", True),
        ("from tools import show", "", False),
        ("from tools.plots import show", "tools", False),
        ("from others.plots import show", "", False),
        (
            "try:\n    from tools.plots import show\nexcept ImportError:\n    show = print",
            "",
            False,
        ),
        ("import sys\nsys.path.insert(0, '..')\nfrom tools.plots import show", "", False),
    ],
)
def test_a_file_that_is_taken_for_a_package(imported: str, folder: str, ending: bool) -> None:
    Path("tools.py").write_text("def show(): pass")
    if folder:
        Path(folder).mkdir()
        Path(folder, "plots.py").write_text("def show(): pass")
    why = "`tools.py` is not a package: `tools.plots` cannot be imported"
    assert ends(first=imported) == (why if ending else "")


@pytest.mark.parametrize(
    ("other", "folder", "ending"),
    [("rows", "", True), ("absent", "", False), ("rows", "tools", False), ("near", "", False)],
)
def test_a_file_above_the_program_is_taken_for_a_package(
    other: str, folder: str, ending: bool
) -> None:
    """Python looks there only if it imports something else from there."""
    Path("pyproject.toml").touch()
    Path("tools.py").write_text("def show(): pass")
    Path("rows.py").write_text("read = print")
    Path("scripts").mkdir()
    Path("scripts/near.py").write_text("read = print")
    if folder:
        Path(folder).mkdir()
    first = f"from {other} import read\nfrom tools.plots import show"
    text = PROGRAM.format(first=first, body="pass", parser="", option="", named="args.none")
    Path("scripts/main.py").write_text(text)
    outcome = check(["scripts/main.py"], Configs())
    assert [each.code for each in outcome.findings] == ([] if ending else ["TL102"])


def test_a_program_of_a_package_may_be_run_from_above() -> None:
    """With `python -m scripts.main` Python does not look beside the program."""
    Path("scripts").mkdir()
    for name in ("tools", "near"):
        Path(f"scripts/{name}.py").write_text("read = print")
    first = "from scripts.near import read\nfrom tools.plots import show"
    text = PROGRAM.format(first=first, body="pass", parser="", option="", named="args.none")
    Path("scripts/main.py").write_text(text)
    for path in ("scripts/main.py", "."):
        assert [each.code for each in check([path], Configs()).findings] == ["TL102"]
