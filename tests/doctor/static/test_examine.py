"""Files are examined each within its bounds; what goes wrong with one stays with it."""

from __future__ import annotations

import ast
import gc
import os
import re
from pathlib import Path

import pytest

from trueloop.doctor.static.inputs.cache import Cache
from trueloop.doctor.static.inputs.examine import examine, examine_all

pytestmark = pytest.mark.usefixtures("planted")


def write(name: str, text: str) -> str:
    Path(name).write_text(text, "utf-8")
    return os.path.abspath(name)


def codes(path: str) -> list[tuple[str, int, int]]:
    return [(each.code, *each.place[1:3]) for each in examine(path).findings]


def test_places_are_the_documents_own() -> None:
    assert codes(write("a.py", "x = 1\n\nTL101()\n")) == [("TL101", 3, 1)]
    assert codes(write("a.md", "- a\n  ```python\n  TL101()\n  ```\n")) == [("TL101", 3, 3)]


def test_edits_are_for_python_files() -> None:
    (finding,) = examine(write("a.py", "TL101('delete')\n")).findings
    assert finding.remedies[0].what == finding.place
    (finding,) = examine(write("a.md", "```python\nTL101('delete')\n```\n")).findings
    assert not finding.remedies


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        ("x = 1\nprint 'two'\n", 2, "does not parse as Python 3"),
        ("x = " + "(" * 500, 1, "does not parse"),
        ("x = " + "-" * 50_000 + "1", 0, "nested too deeply"),
        ("x = y" + ".z" * 50_000, 0, "nested too deeply"),
        ("x = 1\n\0", 2, "null bytes"),
        ("broken_checker()", 0, "a fault of trueloop's own: .* .KeyError: 'a bug', planted_faults"),
    ],
    ids=["python 2", "brackets", "deep", "long", "null", "bug"],
)
def test_what_goes_wrong_is_a_problem_of_the_file(text: str, line: int, why: str) -> None:
    (problem,) = examine(write("a.py", text)).problems
    assert problem.line == line
    assert "\n" not in problem.message
    assert re.search(why, problem.message), problem.message


def test_all_at_once_and_one_by_one_give_the_same() -> None:
    paths = [write(f"f{i}.py", "x = 1\n" * i + "TL101()\n") for i in range(20)]
    assert examine_all(paths, jobs=2) == examine_all(paths, jobs=1)
    assert [each.path for each in examine_all(reversed(paths), jobs=2)] == paths[::-1]


def test_a_file_that_ends_its_process_does_not_end_the_others() -> None:
    paths = [write(f"f{i}.py", "TL101()\n") for i in range(6)]
    fatal = write("fatal.py", "fatal()\n")
    found = {each.path: each for each in examine_all([*paths, fatal], jobs=2)}
    assert all(len(found[path].findings) == 1 for path in paths)
    assert [problem.message for problem in found[fatal].problems] == [
        "ends the process that reads it"
    ]


def test_what_was_not_read_is_kept_with_what_was_found() -> None:
    cache = Cache(Path("cache"))
    path = write("a.py", "x = 1\nlong()\nTL101()\n")
    first = examine_all([path], cache=cache)
    assert first[0].unread is not None
    assert first[0].unread[1:3] == (2, "")
    assert "a run was stopped after 40,000 steps, in line 2" in first[0].unread.message
    assert examine_all([path], cache=cache) == first


def test_no_clock_decides_what_is_read() -> None:
    """Findings are the same on a busy machine."""
    import trueloop.doctor as doctor

    folder = Path(doctor.__file__).parent
    for path in (*folder.glob("static/**/*.py"), *folder.glob("rules/**/*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            clocks = {"time", "datetime", "timeit", "resource", "threading", "sched"}
            assert clocks.isdisjoint(names), path


def test_garbage_is_collected_between_files_and_python_does_as_before_afterwards() -> None:
    assert gc.isenabled()
    examine_all([write("a.py", "TL101()\n"), write("b.py", "TL101()\n")], jobs=1)
    assert gc.isenabled()
    assert not gc.get_freeze_count()
