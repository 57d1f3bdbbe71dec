"""A real Ctrl-C at many moments between a process's first line and its very last."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from trueloop.cli._signals import _is_below_torchs_import

# Sends the process a signal when it first imports MOMENT, or when it is about to be gone; and once
# more, half a second later, while the first is being obeyed, if that is asked for.
PRELUDE = """
import atexit, os, runpy, signal, sys, threading, time

moment, again, entry, *words = sys.argv[1:]

def send():
    os.kill(os.getpid(), signal.SIGINT)

class AtImport:
    def find_spec(self, name, path=None, target=None):
        if name == moment:
            sys.meta_path.remove(self)
            if again == "twice":
                try:
                    send()
                finally:  # a clean-up that takes its time
                    threading.Timer(0.6, send).start()
                    for _ in range(200):  # a signal need not wake the thread that sleeps
                        time.sleep(0.1)
            send()

sys.meta_path.insert(0, AtImport())
if moment == "late":
    atexit.register(send)
def at_shutdown():
    while threading.main_thread().is_alive():  # it waits for this thread after that
        time.sleep(0.01)
    send()
    time.sleep(20)

if moment == "shutdown":
    threading.Thread(target=at_shutdown).start()
sys.argv = ["trueloop", *words]
if entry == "module":
    runpy.run_module("trueloop", run_name="__main__", alter_sys=True)
else:
    from trueloop.cli import main
    sys.exit(main())
"""
TRAIN = "train spiral --epochs 1 --quiet --run new"


def outcome(moment: str, again: str, entry: str, words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", PRELUDE, moment, again, entry, *words.split()],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )


@pytest.mark.parametrize(
    ("moment", "again", "entry", "words"),
    [
        ("trueloop.cli.train", "once", "module", TRAIN),
        ("trueloop.cli.options", "twice", "script", TRAIN),
        ("numpy", "once", "script", TRAIN),
        ("torch._C", "once", "module", TRAIN),
        ("torch.nn", "twice", "module", TRAIN),
        ("jsonargparse", "once", "script", "runs"),
        ("trueloop.tasks.spiral", "once", "module", TRAIN),
        ("torch._dynamo", "once", "module", TRAIN),
        ("trueloop.doctor.live.session", "once", "script", "watch x.py"),
    ],
)
def test_a_ctrl_c_in_the_first_seconds(moment: str, again: str, entry: str, words: str) -> None:
    Path("x.py").write_text("print('it ran')\n")
    done = outcome(moment, again, entry, words)
    # By then the run is begun; before, nothing was said of one.
    early = " while torch was imported; nothing was written"
    again = "; no update was made, so there is nothing to resume: write the same command again"
    said = {"numpy": early, "torch._C": early, "torch.nn": early, "torch._dynamo": again}
    words = said.get(moment, "")
    assert (done.returncode, done.stdout, done.stderr) == (
        130,
        "",
        f"trueloop: interrupted{words}\n",
    )
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("module", "below"), [("torch", True), ("torch._dynamo", False), ("torchinfo", False)]
)
def test_no_exception_goes_through_the_c_of_torch(module: str, below: bool) -> None:
    found: list[bool] = []

    def called_by_c() -> None:
        found.append(_is_below_torchs_import(sys._getframe()))

    exec("called_by_c()", {"__name__": module, "called_by_c": called_by_c})
    assert found == [below]


@pytest.mark.parametrize("moment", ["late", "shutdown"])
def test_a_ctrl_c_when_all_is_done_changes_nothing(moment: str) -> None:
    began = time.monotonic()
    done = outcome(moment, "once", "module", "runs nowhere")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    assert time.monotonic() - began < 20  # the thread that would sleep on is left


def test_two_ctrl_c_in_training_and_one_in_the_shutdown() -> None:
    command = [sys.executable, "-c", PRELUDE, "late", "once", "module"]
    process = subprocess.Popen(
        [*command, *TRAIN.replace("--epochs 1", "--epochs 100000").split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    deadline = time.monotonic() + 60
    while not Path("new/checkpoints").is_dir() or not any(Path("new/checkpoints").glob("e*")):
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    go_on = "resume with: trueloop resume new\n"
    # The second one finds the report being written, or all done.
    assert (out.endswith(go_on) and not err) or err == f"trueloop: interrupted; {go_on}"
