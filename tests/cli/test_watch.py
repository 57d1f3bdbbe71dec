"""`trueloop watch`: its command, and mistakes in it, before any program runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Command


def test_the_help_shows_an_example(command: Command) -> None:
    shown = command("watch", "--help")
    assert shown.status == 0
    assert "trueloop watch train.py --epochs 3" in shown.out
    assert shown.err == ""
    assert all(len(line) <= 100 for line in shown.out.splitlines())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "SCRIPT is missing: write trueloop watch SCRIPT, or -m MODULE"),
        (["--first", "3"], "SCRIPT is missing: write trueloop watch SCRIPT, or -m MODULE"),
        (["-m"], "-m needs a module: write trueloop watch -m MODULE"),
        (["gone.py"], "no such file: gone.py: check the path"),
        (["folder"], "folder is a folder without a __main__.py: write a script's name"),
        ([""], "'' is not a path: write the name of a script"),
        (["/dev/null"], "/dev/null is a character device: write the name of a script"),
        (["pipe"], "pipe is a FIFO: write the name of a script"),
        (["--outptu", "x", "a.py"],
         "unknown option --outptu: did you mean --output?; the program's own follow its name"),
        (["--first"], "--first needs a value: write --first=VALUE"),
        (["--first", "0", "a.py"], "--first must be a whole number from 1, not '0'"),
        (["--first=x", "a.py"], "--first must be a whole number from 1, not 'x'"),
        (["--format", "xml", "a.py"], "unknown format 'xml': known: 'json', 'text'"),
        (["--format", "jsn", "a.py"], "unknown format 'jsn': did you mean 'json'?"),
        (["--select", "TL999", "a.py"], "--select: unknown rule 'TL999': "),
        (["--ignore", "TL999", "a.py"], "--ignore: unknown rule 'TL999': "),
        (["--select", ",", "a.py"], "--select names no rule: write codes such as TL101,TL2"),
        (["--select", "TL101,TL205", "a.py"],
         "--select: TL205 is found only in source: use trueloop check, or remove it"),
        (["--output", "no/such/file", "a.py"],
         "--output no/such/file cannot be written (No such file or directory): choose a"),
        (["--output", "folder", "a.py"],
         "--output folder cannot be written (Is a directory): choose a different place"),
    ],
    ids=lambda value: " ".join(value)[:30] if isinstance(value, list) else "",
)  # fmt: skip
def test_a_mistake_is_one_line(command: Command, words: list[str], complaint: str) -> None:
    Path("folder").mkdir()
    Path("a.py").write_text("raise SystemExit('it must not run')")
    os.mkfifo("pipe")
    ended = command("watch", *words)
    assert ended.status == 2
    assert ended.out == ""
    assert ended.complaint.startswith(f"trueloop: error: {complaint}")
    assert sorted(os.listdir()) == ["a.py", "folder", "pipe"]


def test_a_faulty_configuration_is_told_before_the_program_runs(command: Command) -> None:
    Path("a.py").write_text("raise SystemExit('it must not run')")
    Path("pyproject.toml").write_text('[tool.trueloop]\nselct = ["TL1"]\n')
    ended = command("watch", "a.py")
    assert ended.status == 2
    assert "unknown key 'selct'" in ended.complaint


def watch(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "trueloop", "watch", *words], capture_output=True, text=True
    )


@pytest.mark.parametrize("name", ["gone", "gone.part", "folder", "os.gone"])
def test_a_module_that_there_is_not(name: str) -> None:
    Path("folder").mkdir()
    Path("folder/__init__.py").write_text("")
    ended = watch("-m", name)
    assert ended.returncode == 2
    assert ended.stdout == ""
    (line,) = ended.stderr.splitlines()
    assert line.startswith("trueloop: error: ")
    assert "No module named" in line or "Error while finding module" in line
    assert line.endswith(": check the name after -m")


def test_what_follows_the_name_is_the_programs() -> None:
    Path("a.py").write_text("import sys; print(sys.argv)")
    Path("--odd.py").write_text("import sys; print(sys.argv)")
    assert watch("a.py", "--help", "--", "-m").stdout == "['a.py', '--help', '--', '-m']\n"
    assert watch("--", "--odd.py", "--").stdout == "['--odd.py', '--']\n"
    assert watch("--first", "3", "--format=text", "a.py").stdout == "['a.py']\n"
    assert watch("-m", "a", "-m").stdout.endswith("a.py', '-m']\n")


def test_nothing_of_ours_is_in_the_program() -> None:
    """No library is imported for it, torch least of all, and no warning is silenced."""
    Path("a.py").write_text(
        "import sys, warnings\n"
        "names = {name.partition('.')[0] for name in sys.modules}\n"
        "print(names & {'torch', 'numpy', 'jsonargparse', 'yaml', 'rich', 'multiprocessing'})\n"
        "print(len(warnings.filters))\n"
    )
    alone = subprocess.run([sys.executable, "a.py"], capture_output=True, text=True, check=True)
    assert watch("a.py").stdout == alone.stdout
    assert alone.stdout.startswith("set()\n")


def test_the_report_goes_to_the_file_and_nowhere_else() -> None:
    Path("a.py").write_text("import os; os.mkdir('x'); os.chdir('x')")
    ended = watch("--output", "report.txt", "a.py")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
    told = Path("report.txt").read_text()
    assert told == "trueloop: nothing was watched: torch was not imported\n"


def test_a_report_that_cannot_be_written_in_the_end_is_not_lost() -> None:
    Path("out").mkdir()
    Path("a.py").write_text("import os; os.rmdir('out')")
    ended = watch("--output", "out/report.txt", "a.py")
    assert ended.returncode == 0
    first, second = ended.stderr.splitlines()
    assert first == "trueloop: nothing was watched: torch was not imported"
    assert "cannot be written (No such file or directory): the report is above" in second


def test_a_reader_that_has_gone_away_is_no_fault() -> None:
    Path("a.py").write_text("import os; os.close(2); print('x')")
    ended = watch("a.py")
    assert (ended.returncode, ended.stdout) == (0, "x\n")
