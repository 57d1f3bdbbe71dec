"""The scripts of `trueloop completion`, run by the shells that they are for."""

from __future__ import annotations

import functools
import os
import pty
import select
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from trueloop.cli import VERBS, completion
from trueloop.cli.completion import SHELLS, script, whole_parser

Command = Callable[..., Any]
BASH = """
source {script}
complete() {{
  COMP_WORDS=("$@"); COMP_CWORD=$(( $# - 1 ))
  _shtab_trueloop
  echo "${{COMPREPLY[*]}}"
}}
"""
FILES = {"c.yaml", "mine.py", "runs", "t.csv"}
RUNS = {"runs/a", "runs/b", "runs"}
# A command line as it is typed, with its last word unfinished, and what completes that.
CASES: dict[str, set[str]] = {
    "trueloop tra": {"train"},
    "trueloop comp": {"completion"},
    "trueloop train ''": {"spiral", "digits", "table", "images", "text"},
    "trueloop train spiral --opti": {"--optimizer"},
    "trueloop train spiral --optimizer ''": {"adamw", "adam", "sgd", "muon"},
    "trueloop train spiral --lr 1e-3 --schedule warmup_": {"warmup_cosine", "warmup_stable_decay"},
    "trueloop train spiral --device ''": {"auto", "cpu", "cuda", "mps"},
    "trueloop train table --targ": {"--target"},
    "trueloop train table --streaming ''": {"auto", "always", "never"},
    "trueloop train table --data ''": FILES,
    "trueloop train table --data t": {"t.csv"},
    "trueloop train --config c": {"c.yaml"},
    "trueloop train spiral --no-qui": {"--no-quiet"},
    "trueloop tune digits --pruner ''": {"median", "hyperband", "none"},
    "trueloop verify-resume spiral --fsdp-param-dtype ''": {"bf16", "fp16"},
    "trueloop resume ''": RUNS,
    "trueloop resume runs/": {"runs/a", "runs/b"},
    "trueloop evaluate runs/a --dev": {"--device"},
    "trueloop report runs/a ''": RUNS,
    "trueloop predict runs/a --data ''": FILES,
    "trueloop generate runs/a --preset ''": {"factual", "creative", "code", "chat"},
    "trueloop check ''": FILES,
    "trueloop check mine.py --format ''": {"text", "json", "sarif", "github"},
    "trueloop watch --format ''": {"text", "json"},
    "trueloop watch mi": {"mine.py"},
    "trueloop runs --sort sc": {"score"},
    "trueloop completion ''": set(SHELLS),
}


@pytest.fixture(scope="session")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all scripts; one parser is made for them."""
    folder = tmp_path_factory.mktemp("completion")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(completion, "whole_parser", functools.cache(whole_parser))
        for shell in SHELLS:
            (folder / shell).write_text(script(shell))
    (folder / "_trueloop").symlink_to(folder / "zsh")  # the name that zsh looks for
    return folder


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for run in ("a", "b"):
        (tmp_path / "runs" / run).mkdir(parents=True)
        (tmp_path / "runs" / run / "config.json").touch()
    for name in FILES - {"runs"}:
        (tmp_path / name).touch()
    return tmp_path


def completed(words: list[str], lines: list[str], place: Path) -> list[str]:
    """The lines that a shell prints for a program of `lines`."""
    program = "\n".join(lines)
    done = subprocess.run([*words, program], cwd=place, capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    return done.stdout.splitlines()


def test_bash_completes_each_word(scripts: Path, place: Path) -> None:
    lines = [BASH.format(script=scripts / "bash"), *(f"complete {line}" for line in CASES)]
    found = completed(["bash", "--norc", "-c"], lines, place)
    for (line, expected), words in zip(CASES.items(), found, strict=True):
        assert set(words.split()) == expected, line


@pytest.mark.skipif(shutil.which("fish") is None, reason="fish is not installed")
def test_fish_completes_each_word(scripts: Path, place: Path) -> None:
    typed = {line.removesuffix("''"): expected for line, expected in CASES.items()}
    lines = [f"source {scripts / 'fish'}"]
    lines += [f"echo = ; complete -C {shlex.quote(line)}" for line in typed]
    blocks = "\n".join(completed(["fish", "--no-config", "-c"], lines, place)).split("=")[1:]
    for (line, expected), block in zip(typed.items(), blocks, strict=True):
        words = {row.split("\t")[0].rstrip("/") for row in block.split("\n") if row}
        assert words >= expected, (line, words)


class Typed:
    """A shell in a terminal, that keys are typed into."""

    def __init__(self, words: list[str], place: Path) -> None:
        child, self.terminal = pty.fork()
        if child == 0:
            os.chdir(place)
            os.environ.update(PS1="$ ", TERM="dumb", HOME=str(place))
            os.execvp(words[0], words)
        self.child = child

    def type(self, keys: str, until: str, seconds: float = 30.0) -> str:
        """What is printed after `keys`, up to and with `until`."""
        os.write(self.terminal, keys.encode())
        shown, end = "", time.monotonic() + seconds
        while until not in shown:
            ready, _, _ = select.select([self.terminal], [], [], max(end - time.monotonic(), 0))
            assert ready, f"not {until!r} but {shown!r}"
            shown += os.read(self.terminal, 4096).decode(errors="replace")
        return shown

    def close(self) -> None:
        os.close(self.terminal)
        os.waitpid(self.child, 0)


KEYS = {
    "trueloop tra\t": "train",
    "spi\t": "spiral",
    "--opti\t": "--optimizer",
    "mu\t": "muon",
    "--run ru\t": "runs",
}


@pytest.mark.parametrize(
    ("words", "load"),
    [
        (["bash", "--norc", "-i"], "source {0}/bash"),
        (["zsh", "-f", "-i"], "fpath=({0} $fpath); autoload -U compinit && compinit -u -D"),
    ],
    ids=["bash", "zsh"],
)
def test_a_tab_completes(words: list[str], load: str, scripts: Path, place: Path) -> None:
    if shutil.which(words[0]) is None:
        pytest.skip(f"{words[0]} is not installed")
    shell = Typed(words, place)
    shell.type(load.format(scripts) + "; echo rea''dy\n", until="\nready")
    for keys, word in KEYS.items():
        shell.type(keys, until=word)
    shell.close()


def test_a_script_has_every_verb_and_calls_nothing_for_it(scripts: Path) -> None:
    for shell in SHELLS:
        text = (scripts / shell).read_text()
        assert all(verb in text for verb in VERBS)
        assert "$(trueloop" not in text
        assert "(trueloop" not in text


def test_an_unknown_shell(command: Command) -> None:
    assert "unknown shell 'tcsh': did you mean" in command("completion", "tcsh").complaint
    assert "SHELL is missing: write trueloop completion SHELL" in command("completion").complaint
