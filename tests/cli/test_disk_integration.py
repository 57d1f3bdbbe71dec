"""Real disks: a small one that fills up, and one that is made read-only under a running run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import warm_python
from trueloop.checkpoint import load_checkpoint
from trueloop.run import Run

TRAIN = [sys.executable, "-m", "trueloop", "train", "spiral", "--run", "r", "--quiet"]
OPTIONS = ["--save-every", "20 updates", "--keep-last", "90"]
# A mount of one's own ends with the processes that see it, and needs no privilege where the
# system lets users have a namespace.
NAMESPACE = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]


def can_mount() -> bool:
    if shutil.which("unshare") is None:
        return False
    words = [*NAMESPACE, "mount", "-t", "tmpfs", "tmpfs", "/tmp"]
    return subprocess.run(words, capture_output=True).returncode == 0


needs_mount = pytest.mark.skipif(not can_mount(), reason="mounting is not allowed here")


def in_namespace(script: str, folder: str, *words: str) -> subprocess.CompletedProcess[str]:
    """`trueloop train` in `folder`, within the mounts of a shell that says when they are there."""
    shell = subprocess.Popen(
        [*NAMESPACE, "sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        assert shell.stdout is not None
        assert shell.stdout.readline() == "ready\n"
        there = type("There", (warm_python.Popen,), {"namespace": shell.pid})
        done = warm_python.run([*TRAIN, *OPTIONS, *words], start=there, cwd=folder, text=True)
        shell.communicate(timeout=60)  # what it reads has ended
    finally:
        shell.kill()
        shell.wait()
    return done


def check_stopped(done: subprocess.CompletedProcess[str], reason: str) -> None:
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert f"({reason}): " in line
    assert line.endswith("; then resume with: trueloop resume r")


def check_continued(done: subprocess.CompletedProcess[str], reason: str) -> None:
    assert done.returncode == 2, "the last state could not be saved"
    lines = done.stderr.splitlines()
    assert len(lines) <= 5, "said once, not at every save"
    assert any("the run continues without this checkpoint; the last one is" in x for x in lines)
    assert any("checkpoints, up to the last, could not be written" in x for x in lines)
    assert f"({reason}): " in lines[-1]
    assert lines[-1].endswith("; then resume with: trueloop resume r")


def check_whole_and_resume(command: Callable[..., Any]) -> None:
    before = load_checkpoint(Run("r").checkpoints)["step"]["counters"][2]
    assert 20 <= before < 640
    done = command("resume", "r", "--quiet")
    assert (done.status, done.err) == (0, "")
    assert Run("r").results["updates"] == 640
    assert len(Run("r").metrics()) == 660


CHECKS = {"stop": check_stopped, "continue": check_continued}


@needs_mount
@pytest.mark.parametrize("on_error", CHECKS)
def test_a_disk_that_fills_up(on_error: str, command: Callable[..., Any]) -> None:
    Path("small").mkdir()
    script = """
        mount -t tmpfs -o size=900k tmpfs small || exit
        echo ready; read end
        cp -a small/r .
    """
    done = in_namespace(script, "small", "--epochs", "20", "--on-save-error", on_error)
    CHECKS[on_error](done, "No space left on device")
    check_whole_and_resume(command)


@needs_mount
@pytest.mark.parametrize(("on_error", "folder"), [("stop", "r"), ("continue", "r/checkpoints")])
def test_a_folder_that_is_made_read_only(
    on_error: str, folder: str, command: Callable[..., Any]
) -> None:
    script = f"""
        mkdir -p r; mount --bind r r || exit
        echo ready
        until [ -e r/checkpoints/e00000-b00020-u000000020 ]; do sleep 0.02; done
        [ {folder} = r ] || mount --bind {folder} {folder}
        mount --bind {folder} {folder}
        until mount -o remount,ro,bind {folder}; do sleep 0.01; done
        read end
    """
    done = in_namespace(script, ".", "--epochs", "20", "--on-save-error", on_error)
    CHECKS[on_error](done, "Read-only file system")
    check_whole_and_resume(command)


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is forbidden to root")
@pytest.mark.parametrize("on_error", CHECKS)
def test_a_folder_without_permission(on_error: str, command: Callable[..., Any]) -> None:
    words = [*TRAIN, *OPTIONS, "--epochs", "20", "--on-save-error", on_error]
    job = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    checkpoints = Path("r/checkpoints")
    while not list(checkpoints.glob("e*-u000000020")):
        assert job.poll() is None, job.communicate()
    checkpoints.chmod(0o500)
    _, err = job.communicate(timeout=120)
    checkpoints.chmod(0o700)
    CHECKS[on_error](
        subprocess.CompletedProcess(words, job.returncode, "", err), "Permission denied"
    )
    check_whole_and_resume(command)
