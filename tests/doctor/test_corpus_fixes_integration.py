"""Fixed corpus programs: the finding is gone, no other has come, and the program still runs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import warm_python
from trueloop.doctor.model.findings import Finding
from trueloop.doctor.static import check_text
from trueloop.doctor.static.fixes.apply import fix_text, fix_until_done

CORPUS = Path(__file__).parent / "corpus"
BAD = sorted(path for path in CORPUS.glob("TL[1-9]*/bad_*.py"))
# The rules that move, add or replace a line. Not all of their bad programs can be put right so.
FIXABLE = (
    "TL101 TL102 TL103 TL104 TL105 TL107 TL108 TL109 TL201 TL202 TL204 TL205 TL206 TL303 TL307"
    " TL501 TL502 TL503 TL508 TL601 TL704 TL802 TL803 TL804 TL805"
).split()
# Each in a child of one process that has imported torch once. Taking down a process group right
# after the last backward may never return (a destructor of torch waits, with the interpreter's
# lock, for a thread that wants it): such a run is made again.
RUN = """
import gc, os, signal, sys, tempfile, traceback
os.environ["OMP_NUM_THREADS"] = "1"
import torch, torch._dynamo
gc.freeze()  # else the first collection in each child copies what it looks at
def run(path):
    child = os.fork()
    if not child:
        signal.alarm(60)
        status = 1
        try:
            with tempfile.TemporaryDirectory() as folder:
                os.chdir(folder)
                sys.argv, sys.stdout = [path], open(os.devnull, "w")
                exec(compile(open(path).read(), path, "exec"), {"__name__": "__main__"})
            status = 0
        except SystemExit as leave:
            status = int(bool(leave.code))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]
for path in sys.argv[1:]:
    status = run(path)
    if status == signal.SIGALRM:
        status = run(path)
    if status:
        print("failed:", path)
"""


def check(text: str, path: Path) -> list[Finding]:
    found = check_text(text, str(path), strict=True).findings
    own = path.parent.name  # some rules only advise where nobody is seen to be hurt
    return [each for each in found if each.severity != "advice" or each.code == own]


def with_remedies() -> list[tuple[Path, str, list[Finding]]]:
    found = []
    for path in BAD:
        text = path.read_text(encoding="utf-8")
        findings = check(text, path)
        if any(finding.remedies for finding in findings):
            found.append((path, text, findings))
    return found


@pytest.fixture(scope="module")
def fixable() -> list[tuple[Path, str, list[Finding]]]:
    return with_remedies()


def test_each_of_the_rules_fixes_something(
    fixable: list[tuple[Path, str, list[Finding]]],
) -> None:
    assert {path.parent.name for path, _, _ in fixable} >= set(FIXABLE)


def test_a_fixed_program_is_free_of_findings(
    fixable: list[tuple[Path, str, list[Finding]]],
) -> None:
    wrong = []
    for path, text, findings in fixable:
        once = fix_text(text, findings)
        rest = check(once.text, path)
        proven = fix_until_done(text, findings, lambda new, path=path: check(new, path))
        if rest or once.left or proven.text != once.text:
            wrong.append((path.parent.name, path.name, rest, once.left))
        # Applied again, there is nothing to do.
        assert fix_text(once.text, rest).text == once.text
    assert not wrong


@pytest.mark.skipif(sys.platform == "win32", reason="forks")
def test_a_fixed_program_runs(
    fixable: list[tuple[Path, str, list[Finding]]], tmp_path: Path
) -> None:
    paths = []
    for path, text, findings in fixable:
        fixed = tmp_path / f"{path.parent.name}_{path.name}"
        fixed.write_text(fix_text(text, findings).text, encoding="utf-8")
        paths.append(str(fixed))
    words = [sys.executable, "-c", RUN, *paths]
    done = warm_python.run(words, start=warm_python.Bare, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "failed:" not in done.stdout, done.stdout + done.stderr
