"""`--help` and `--help-all`: two screens for what is usual, every option in one group."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from trueloop import schedules
from trueloop.cli import VERBS
from trueloop.cli._help import first_sentence, sections
from trueloop.cli._tune_options import TuneOptions
from trueloop.cli.options import RunOptions, VerifyOptions, settings_from, train_parser
from trueloop.errors import ConfigError
from trueloop.option import OptionFacts, facts_of, option
from trueloop.tasks import READY_MADE, Recipe, load
from trueloop.tasks.recipe import SCHEDULES

Command = Callable[..., Any]
TWO_SCREENS = 50
BY_TASK = {"train": RunOptions, "verify-resume": VerifyOptions, "tune": TuneOptions}
PAGES = [
    *((verb,) for verb in VERBS),
    *((verb, task) for verb in BY_TASK for task in READY_MADE),
]


@pytest.fixture(autouse=True)
def _eighty_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("words", PAGES, ids=" ".join)
def test_help_is_two_screens_with_an_example(command: Command, words: tuple[str, ...]) -> None:
    shown = command(*words, "--help")
    assert shown.status == 0
    assert f"\nexample:\n  trueloop {' '.join(words)}" in shown.out
    lines = shown.out.splitlines()
    assert len(lines) <= TWO_SCREENS
    page = lines[: lines.index("example:")]
    assert max(map(len, page)) <= 80


@pytest.mark.parametrize("task", READY_MADE)
@pytest.mark.parametrize("verb", BY_TASK)
def test_every_option_is_in_exactly_one_group(task: str, verb: str) -> None:
    parser = train_parser(task, load(task), BY_TASK[verb])
    for everything in (False, True):
        listed = [a.dest for _, actions in sections(parser, everything=everything) for a in actions]
        assert len(listed) == len(set(listed))
    assert set(listed) == {action.dest for action in parser._actions}
    assert {title for title, _ in sections(parser, everything=True)} >= {
        "length and evaluation",
        "updates",
        "machine",
    }


def test_every_option_has_a_text_and_says_its_default(command: Command) -> None:
    shown = " ".join(command("train", "table", "--help-all").out.split())
    parser = train_parser("table", load("table"))
    for action in parser._actions:
        assert action.help, action.dest
        assert f"{action.option_strings[0].replace('--', '')}" in shown
    assert "--target TEXT The column to predict (required)" in shown
    assert "(default: 256 samples)" in shown
    assert "(in minutes; default: no limit)" in shown
    assert "--optimizer NAME Optimizer. sgd has" in shown
    assert "(adamw, adam, sgd, muon; default: adamw)" in shown
    assert "--[no-]doctor Watch" in shown


def cases() -> list[tuple[str, str, str]]:
    """Each value that a page names of an option, with its task."""
    found = []
    for task in READY_MADE:
        parts = [load(task).Options] + ([Recipe, RunOptions] if task == "spiral" else [])
        for field in (field for part in parts for field in dataclasses.fields(part)):
            name = "--" + field.name.replace("_", "-")
            found += [(task, name, word) for word in getattr(facts_of(field), "choices", ())]
    return found


NEEDS = {"--fsdp-param-dtype": ["--parallel", "fsdp"], "--resume": ["--run", "x"]}
NEEDS |= {"--decay-shape": ["--schedule", "warmup_stable_decay"]}


@pytest.mark.parametrize(("task", "name", "word"), cases())
def test_the_values_of_the_page_are_taken_and_no_others(task: str, name: str, word: str) -> None:
    word = re.sub(r"\bN\b", "7", word).replace("COLUMN", "c")
    settings_from(task, [name, word, *NEEDS.get(name, [])])


@pytest.mark.parametrize("part", [Recipe, RunOptions])
def test_other_values_are_refused_with_the_nearest(part: type) -> None:
    for field in dataclasses.fields(part):
        words = getattr(facts_of(field), "choices", ())
        if words and all(word == word.lower() for word in words):
            name = "--" + field.name.replace("_", "-")
            with pytest.raises(ConfigError, match=f"unknown .*{words[0][:3]}"):
                settings_from("spiral", [name, words[0] + "x", *NEEDS.get(name, [])])


def test_the_page_names_every_schedule() -> None:
    with pytest.raises(ConfigError) as refused:
        schedules.by_name("")
    assert set(re.findall(r"'(\w+)'", str(refused.value))) == set(SCHEDULES)


def test_the_first_sentence() -> None:
    assert first_sentence("One, e.g. this. Two.") == "One, e.g. this"
    assert first_sentence("One; two.") == "One"
    assert first_sentence("0.5 of it") == "0.5 of it"


def test_a_field_says_what_the_page_says_of_it() -> None:
    @dataclass
    class Options:
        names: list[str] = option(["a"], usual=True)
        count: int = option(3, unit="things")
        plain: int = 4

    assert Options() == Options(["a"], 3, 4)
    assert Options().names is not Options().names
    _, count, plain = dataclasses.fields(Options)
    assert facts_of(count) == OptionFacts(unit="things")
    assert facts_of(plain) is None


def test_help_of_a_users_task_lists_each_of_its_options(command: Command, line: str) -> None:
    shown = command("train", line, "--help").out
    assert all(f"--{name}" in shown for name in ("points", "names", "[no-]poison", "good-batches"))


def test_help_asks_for_no_file(command: Command, tmp_path: Path) -> None:
    assert command("train", "table", "--help").status == 0
    assert list(tmp_path.iterdir()) == []
