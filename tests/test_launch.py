"""examples/launch: the recipes, with stand-ins for the programs that this machine has not got."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from torch.distributed.run import parse_args

from trueloop.cli import main

RECIPES = Path(__file__).parents[1] / "examples" / "launch"
SCRIPTS = sorted(RECIPES.glob("*.sh"))
NOTES = f"""#!{sys.executable} -S
import json, os, sys
with open(os.environ["NOTES"], "a") as notes:
    print(json.dumps([os.path.basename(sys.argv[0]), *sys.argv[1:]]), file=notes)
"""
"""A program that only notes how it was called."""


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that comes first in PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    for name in ("torchrun", "scontrol"):
        program(folder / name, NOTES)
    return folder


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def calls(folder: Path) -> list[list[str]]:
    notes = folder.parent / "notes"
    return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []


def torchrun(words: list[str]) -> Any:
    """torchrun's own reading of its arguments; what follows them is a command of trueloop's."""
    arguments = parse_args(words)
    assert arguments.module
    assert arguments.training_script == "trueloop"
    assert arguments.rdzv_backend == "c10d"
    assert arguments.max_restarts > 0
    with contextlib.redirect_stdout(None):
        assert main([*arguments.training_script_args, "--print-config"]) == 0
    assert "auto" in (words[-1], words[-1].partition("=")[2]), "it resumes"
    return arguments


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.name)
def test_scripts_are_bash(script: Path) -> None:
    assert os.access(script, os.X_OK)
    subprocess.run(["bash", "-n", script], check=True)
    if shellcheck := shutil.which("shellcheck"):
        subprocess.run([shellcheck, script], check=True)


@pytest.mark.parametrize("hosts", ["1", "2", "1:2"])
def test_torchrun_on_several_hosts(
    hosts: str, programs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"HOSTS": hosts, "MAIN": "node-a", "RANKS": "4", "PORT": "1234"}
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    options = ["spiral", "--run", "runs/with a space", "--epochs", "3"]
    subprocess.run([RECIPES / "torchrun.sh", *options], check=True)
    [(_, *words)] = calls(programs)
    arguments = torchrun(words)
    assert (arguments.nnodes, arguments.nproc_per_node) == (hosts, "4")
    assert arguments.rdzv_endpoint == "node-a:1234"
    assert arguments.training_script_args == ["train", *options, "--resume", "auto"]


# ------------------------------------------------------------------------------- SLURM

SRUN = f"""#!{sys.executable} -S
import os, sys
with open(os.environ["NOTES"] + ".pid", "w") as file:
    file.write(str(os.getpid()))
os.execvp(sys.argv[1], sys.argv[1:])
"""
SCANCEL = """#!/usr/bin/env bash
[ "$1 $2" = "--signal=TERM 77" ] && kill -TERM "$(cat "$NOTES.pid")"
"""
SCONTROL = NOTES + 'if sys.argv[1] == "show":\n    print("node-a\\nnode-b")\n'
TRAINING = f"""#!{sys.executable} -S
import os, signal, sys, time
from pathlib import Path
notes = Path(os.environ["NOTES"])
def save(*_):
    time.sleep(0.2)  # longer than the script's wait lasts
    notes.with_suffix(".saved").touch()
    sys.exit(int(os.environ["STATUS"]))
signal.signal(signal.SIGTERM, save)
notes.with_suffix(".training").touch()
time.sleep(30 if os.environ["LONG"] else 0)
sys.exit(int(os.environ["STATUS"]))
"""


@pytest.fixture
def slurm(programs: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, text in (("srun", SRUN), ("scancel", SCANCEL), ("scontrol", SCONTROL)):
        program(programs / name, text)
    for name, value in (("JOB_ID", "77"), ("JOB_NODELIST", "node-[a-b]"), ("NNODES", "2")):
        monkeypatch.setenv(f"SLURM_{name}", value)
    return programs


def test_a_slurm_job_starts_torchrun_on_each_host(
    slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "8")
    subprocess.run([RECIPES / "slurm.sh", "spiral", "--run", "runs/a"], check=True)
    hosts, (_, *words) = calls(slurm)
    assert hosts == ["scontrol", "show", "hostnames", "node-[a-b]"]
    arguments = torchrun(words)
    assert (arguments.nnodes, arguments.nproc_per_node) == ("2", "8")
    assert arguments.rdzv_endpoint == "node-a:29400"
    assert arguments.rdzv_id == "77-0"


@pytest.mark.parametrize(
    ("status", "signalled", "requeued"), [(1, True, True), (0, True, False), (1, False, False)]
)
def test_a_slurm_job_that_was_warned_waits_for_the_save_and_is_queued_again(
    status: int, signalled: bool, requeued: bool, slurm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(slurm / "torchrun", TRAINING)
    monkeypatch.setenv("STATUS", str(status))
    monkeypatch.setenv("LONG", "yes" if signalled else "")
    job = subprocess.Popen([RECIPES / "slurm.sh", "spiral", "--run", "runs/a"])
    try:
        if signalled:
            end = time.monotonic() + 20
            while not (slurm.parent / "notes.training").exists():
                assert time.monotonic() < end
                time.sleep(0.01)
            job.send_signal(signal.SIGUSR1)
        assert job.wait(20) == status
    finally:
        job.kill()
    assert (slurm.parent / "notes.saved").exists() is signalled
    assert (["scontrol", "requeue", "77"] in calls(slurm)) is requeued


def test_slurm_gives_more_time_than_torchrun_takes() -> None:
    text = (RECIPES / "slurm.sh").read_text()
    assert "#SBATCH --signal=B:USR1@300" in text
    assert "TORCH_ELASTIC_SHUTDOWN_TIMEOUT=240" in text


# ------------------------------------------------------------------------------- YAML


def test_the_parts_of_the_kubernetes_manifest_name_each_other() -> None:
    service, job = yaml.safe_load_all((RECIPES / "kubernetes.yaml").read_text())
    assert (service["kind"], job["apiVersion"], job["kind"]) == ("Service", "batch/v1", "Job")
    name, spec = service["metadata"]["name"], job["spec"]
    pod, own = spec["template"]["spec"], job["metadata"]["name"]
    # A pod of an Indexed Job is JOB-INDEX.SUBDOMAIN, through a service without an address.
    assert service["spec"]["clusterIP"] == "None"
    assert service["spec"]["selector"] == {"batch.kubernetes.io/job-name": own}
    assert (spec["completionMode"], pod["subdomain"]) == ("Indexed", name)
    [container] = pod["containers"]
    program, *words = container["command"]
    assert program == "torchrun"
    arguments = torchrun(words)
    [port] = service["spec"]["ports"]
    assert arguments.rdzv_endpoint == f"{own}-0.{name}:{port['port']}"
    assert int(arguments.nnodes) == spec["completions"] == spec["parallelism"]
    assert int(arguments.nproc_per_node) == container["resources"]["limits"]["nvidia.com/gpu"]
    assert pod["restartPolicy"] == "Never", "a podFailurePolicy asks for it"
    [seconds] = [each["value"] for each in container["env"] if "SHUTDOWN" in each["name"]]
    assert int(seconds) < pod["terminationGracePeriodSeconds"]
    mounted = {mount["name"] for mount in container["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod["volumes"]}
    folders = tuple(mount["mountPath"] for mount in container["volumeMounts"])
    paths = [w.partition("=")[2] for w in words if w.startswith(("--data=", "--run="))]
    assert all(path.startswith(folders) for path in paths)


def test_a_skypilot_task_starts_torchrun(programs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = yaml.safe_load((RECIPES / "skypilot.yaml").read_text())
    monkeypatch.setenv("SKYPILOT_NODE_IPS", "10.0.0.1\n10.0.0.2")
    monkeypatch.setenv("SKYPILOT_NUM_NODES", str(task["num_nodes"]))
    monkeypatch.setenv("SKYPILOT_NUM_GPUS_PER_NODE", task["resources"]["accelerators"][-1])
    monkeypatch.setenv("SKYPILOT_TASK_ID", "sky-1")
    subprocess.run(["bash", "-euc", task["run"]], check=True)
    [(_, *words)] = calls(programs)
    arguments = torchrun(words)
    assert (arguments.nnodes, arguments.nproc_per_node) == ("2", "8")
    assert arguments.rdzv_endpoint == "10.0.0.1:29400"
    [volume] = task["volumes"]
    assert f"{volume}/photos" in arguments.training_script_args
