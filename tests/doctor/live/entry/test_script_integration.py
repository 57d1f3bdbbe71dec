"""Programs that train, watched and alone: the same bytes; and what is told of them."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from watched_scripts import FIRST, HEAD, WATCH, alone_and_watched, run_warm, trueloop

import warm_torchrun

GOOD = (
    HEAD
    + """\
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))

def train(epochs, workers=0, context=None):
    loader = DataLoader(data, 8, shuffle=True, num_workers=workers, multiprocessing_context=context)
    for epoch in range(epochs):
        model.train()
        for inputs, targets in loader:
            optimizer.zero_grad()
            loss = nn.functional.mse_loss(model(inputs), targets)
            loss.backward()
            optimizer.step()
        print(epoch, loss.item().hex(), torch.rand(1).item().hex())
    torch.save(model.state_dict(), "weights.pt")
"""
)
BAD = (
    HEAD
    + """\
def train(updates):
    for update in range(updates):
        loss = model(torch.randn(8, 4)).square().mean()
        loss.backward()
        optimizer.zero_grad()
        optimizer.step()
        print(update)

"""
)


def watched(
    folder: Path, text: str, *options: str, words: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    """The program watched, in a process that has imported torch before."""
    text = text.replace(FIRST, "")
    (folder / "train.py").write_text(text)
    return trueloop(["watch", *options, "train.py", *words], folder)


def told(folder: Path, text: str, *options: str) -> tuple[int, dict[str, Any]]:
    """The exit status, and the JSON object of what was found."""
    done = watched(folder, text, "--format", "json", "--output", "found.json", *options)
    found: dict[str, Any] = json.loads((folder / "found.json").read_text())
    assert found["problems"] == []
    return done.returncode, found


@pytest.mark.parametrize(
    ("ending", "updates"),
    [
        ("train(3)", 24),
        ("train(2, workers=2)", 16),
        ("if __name__ == '__main__': train(1, workers=1, context='spawn')", 8),
        ("train(1); sys.exit(3)", 8),
        ("train(1); raise RuntimeError('after training')", 8),
        ("train(1); sys.stdout.flush(); os._exit(4)", 8),
        ("import threading; threading.Thread(target=train, args=(2,)).start()", 16),
        ("import atexit; atexit.register(train, 1)", 8),
        ("train(1); child = os.fork(); train(2) if not child else os.waitpid(child, 0)", 8),
        ("compiled = torch.compile(model, backend='eager'); train(1); print(type(compiled))", 8),
    ],
    ids=["ends", "workers", "spawned", "exits", "raises", "_exit", "thread", "at exit", "fork",
         "compile"],
)  # fmt: skip
def test_training_is_the_same_to_the_bit(ending: str, updates: int, tmp_path: Path) -> None:
    cold = ending == "train(3)"  # it imports torch itself, while it is watched
    text = GOOD if cold else GOOD.replace(FIRST, "")
    alone, seen = alone_and_watched(tmp_path, text + ending, warm=not cold)
    closing = f"trueloop: watched {updates} updates of 1 optimizer; nothing found\n"
    assert "weights.pt" in alone.files
    assert seen == alone._replace(err=alone.err + closing)


def test_the_fault_is_told_behind_the_traceback(tmp_path: Path) -> None:
    text = BAD.replace(FIRST, "") + "train(6)\nraise KeyError('x')"
    alone, seen = alone_and_watched(tmp_path, text, warm=True)
    assert seen[:2] == alone[:2]
    assert seen.err.startswith(alone.err + "\ntrain.py:15:9  TL101 error")
    closing = "\ntrueloop: watched 6 updates of 1 optimizer; 1 error"
    assert seen.err.endswith(
        f"{closing}; the exit status is the program's own (with --exit-code 1)\n"
    )


def test_nothing_is_concluded_from_what_an_interrupted_program_has_not_done(tmp_path: Path) -> None:
    schedule = "torch.optim.lr_scheduler.StepLR(optimizer, 10)\n"
    text = GOOD + f"scheduler = {schedule}train(2)\n"
    _, whole = told(tmp_path, text)
    assert [found["code"] for found in whole["findings"]] == ["TL606"]
    _, cut = told(tmp_path, text + "raise KeyboardInterrupt")
    assert cut["findings"] == []
    _, first = told(tmp_path, text, "--first", "5")
    assert first["findings"] == []
    assert first["updates"] == 5


@pytest.mark.parametrize(
    ("ending", "options", "status"),
    [
        ("train(6)", (), 0),
        ("train(6)", ("--exit-code",), 1),
        ("train(6); sys.exit(5)", ("--exit-code",), 5),
        ("train(6); sys.exit()", ("--exit-code",), 1),
        ("train(6)", ("--exit-code", "--ignore", "TL101"), 0),
        ("import threading; threading.Thread(target=train, args=(6,)).start()",
         ("--exit-code",), 1),
    ],
    ids=["told alone", "decides", "is the program's", "exits with 0", "ignored", "thread"],
)  # fmt: skip
def test_findings_decide_the_status_where_asked(
    ending: str, options: Sequence[str], status: int, tmp_path: Path
) -> None:
    done = watched(
        tmp_path, BAD + "import atexit; atexit.register(print, 'end')\n" + ending, *options
    )
    assert done.returncode == status, done.stderr
    assert done.stdout == "0\n1\n2\n3\n4\n5\nend\n"


@pytest.mark.parametrize(
    ("ending", "out"),
    [
        ("train(99)", ""),
        ("try:\n    train(99)\nexcept Exception:\n    print('swallowed')\n"
         "finally:\n    print('finally')", "finally\n"),
        ("try:\n    train(99)\nexcept BaseException:\n    print('swallowed')", "swallowed\n"),
        ("import threading\nt = threading.Thread(target=train, args=(99,))\nt.start()\nt.join()\n"
         "for i in range(9): print('main')", ""),
    ],
    ids=["ends", "passes Exception", "is swallowed", "thread"],
)  # fmt: skip
def test_the_first_error_stops_the_program(ending: str, out: str, tmp_path: Path) -> None:
    done = watched(tmp_path, BAD + ending, "--fail-fast")
    assert done.returncode == 1
    shown = done.stdout.split("\n")
    assert "".join(line + "\n" for line in shown if line and not line.isdigit()) == out
    assert "98" not in shown
    assert "TL101 error" in done.stderr
    assert done.stderr.splitlines()[-1].startswith(
        "trueloop: stopped at the first error, in update"
    )
    assert "Traceback" not in done.stderr


def test_a_warning_stops_nothing(tmp_path: Path) -> None:
    text = GOOD + "s = torch.optim.lr_scheduler.StepLR(optimizer, 10)\ntrain(1)\n"
    done = watched(tmp_path, text, "--fail-fast")
    assert done.returncode == 0
    assert "TL606 warning" in done.stderr


def test_comments_and_the_configuration_silence_findings(tmp_path: Path) -> None:
    assert [each["code"] for each in told(tmp_path, BAD + "train(6)")[1]["findings"]] == ["TL101"]
    said = BAD.replace("optimizer.zero_grad()", "optimizer.zero_grad()  # trueloop: ignore[TL101]")
    for options in ((), ("--fail-fast",)):
        status, found = told(tmp_path, said + "train(6)", *options)
        assert (status, found["findings"], found["stopped"]) == (0, [], False)
    for table in ('ignore = ["TL101"]', 'per-file-ignores = { "train.py" = ["TL1"] }',
                  'select = ["TL2"]'):  # fmt: skip
        (tmp_path / "pyproject.toml").write_text(f"[tool.trueloop]\n{table}\n")
        assert told(tmp_path, BAD + "train(6)")[1]["findings"] == []


def test_the_place_is_the_users_own_wherever_the_program_has_gone(tmp_path: Path) -> None:
    (tmp_path / "inner").mkdir()
    moved = "os.chdir('inner')\ntrain(6)\nos.remove(os.path.join('..', 'train.py'))\n"
    done = watched(tmp_path, BAD + moved)
    assert "\ntrain.py:15:9  TL101 error  zero-grad-after-backward\n" in done.stderr
    assert "15 |         optimizer.zero_grad()\n" in done.stderr  # as it was when it ran


def test_ranks_have_one_report(tmp_path: Path) -> None:
    text = BAD.replace(FIRST, "").replace("print(update)", "")
    (tmp_path / "train.py").write_text(text + "train(6)")
    words = ["--nproc-per-node", "2", "--standalone", "-m", "trueloop", "watch", "--exit-code"]
    process = warm_torchrun.start(
        [*words, "train.py"], tmp_path / "ranks", cwd=tmp_path, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    _, err = process.communicate(timeout=120)
    assert process.returncode == 1
    assert err.count("TL101 error") == 1
    closing = "trueloop: watched 12 updates of 2 optimizers on 2 ranks; 1 error"
    assert err.count(closing) == 1


def test_a_module_is_watched(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "__init__.py").write_text("")
    (tmp_path / "pkg" / "__main__.py").write_text(BAD.replace(FIRST, "") + "train(6)")
    done = run_warm([*WATCH, "-m", "pkg"], tmp_path)
    assert "\npkg/__main__.py:15:9  TL101 error" in done.err


@pytest.mark.parametrize("own", [True, False], ids=["pytest's", "watched pytest"])
def test_inside_of_pytest(own: bool, tmp_path: Path) -> None:
    block = "    with trueloop.watch() as seen:\n        train(6)\n    "
    expected = (
        "assert [each.code for each in seen.findings] == ['TL101']\n    assert seen.updates == 6\n"
    )
    text = "import trueloop\n" + BAD.replace(FIRST, "")
    (tmp_path / "test_own.py").write_text(f"{text}def test_it():\n{block}{expected}")
    pytest_ = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-s", "test_own.py"]
    done = run_warm([*([sys.executable] if own else WATCH), *pytest_], tmp_path)
    assert b"1 passed" in done.out
    assert done.err.count("TL101 error") == 1
