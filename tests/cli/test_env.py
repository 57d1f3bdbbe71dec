"""`trueloop env`: the facts of a machine, and its misconfigurations by facts that are made up."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from trueloop.cli import _machine
from trueloop.cli._machine import Gpu, Machine, machine, read_driver, usable_cores
from trueloop.cli._misconfigurations import misconfigurations
from trueloop.cli.env import as_json, as_text

Command = Callable[..., Any]
GB = 10**9
FINE = Machine(
    versions={"trueloop": "0.1.0", "python": "3.11.7", "torch": "2.13.0+cu126", "numpy": "2.0"},
    extras={"optuna": "5.0", "wandb": None},
    system="Linux",
    cpu="A processor",
    cores=16,
    usable_cores=16.0,
    threads=16,
    interop_threads=16,
    memory=64 * GB,
    free_memory=60 * GB,
    shared_memory=32 * GB,
    open_files=65536,
    torch_cuda="12.6",
    torch_arches=("sm_80", "sm_90", "compute_90"),
    gpus=(Gpu(name="NVIDIA H100", memory=80 * GB, capability=(9, 0)),),
    nvidia=("NVIDIA H100",),
    driver="560.35",
    driver_cuda="12.6",
    runs="/work/runs",
    free_disk=500 * GB,
)
NO_GPU = replace(FINE, gpus=(), nvidia=(), driver=None, driver_cuda=None, torch_cuda=None)


def gpu(major: int, minor: int) -> dict[str, Any]:
    return {"gpus": (Gpu(name="A GPU", memory=GB, capability=(major, minor)),)}


def flags(**values: str) -> dict[str, Any]:
    return {"variables": values}


WRONG: dict[str, list[tuple[dict[str, Any], str]]] = {
    "no-visible-gpu": [
        (flags(CUDA_VISIBLE_DEVICES=""), "unset CUDA_VISIBLE_DEVICES"),
        (flags(CUDA_VISIBLE_DEVICES="-1") | {"gpus": ()}, "unset CUDA_VISIBLE_DEVICES"),
    ],
    "torch-without-cuda": [({"torch_cuda": None, "gpus": ()}, "get-started/locally")],
    "old-driver": [({"driver_cuda": "11.4", "gpus": ()}, "install torch for CUDA 11")],
    "cuda-unavailable": [({"gpus": ()}, "torch.cuda.init()")],
    "no-kernels": [(gpu(7, 0), "get-started/locally"), (gpu(6, 1), "cuda:0 (A GPU, sm_61)")],
    "half-a-launch": [
        ({"ranks": {"WORLD_SIZE": "4"}}, "RANK, MASTER_ADDR, MASTER_PORT is not"),
        ({"ranks": {"WORLD_SIZE": "2", "RANK": "0", "MASTER_ADDR": "a"}}, "with torchrun"),
    ],
    "distributed-debug": [(flags(TORCH_DISTRIBUTED_DEBUG="DETAIL"), "unset TORCH_DIST")],
    "runs-not-writable": [({"is_writable": False}, "--run DIR")],
    "little-disk": [({"free_disk": GB}, "has 1.0 GB free")],
    "little-shared-memory": [({"shared_memory": 64 * 2**20}, "--shm-size=8g, or --workers 0")],
    "few-open-files": [({"open_files": 256}, "ulimit -n 65536")],
    "one-thread": [(flags(OMP_NUM_THREADS="1") | {"threads": 1}, "or --threads 16")],
    "more-threads-than-cores": [
        ({"threads": 64}, "export OMP_NUM_THREADS=16"),
        ({"usable_cores": 2.5}, "2 cores of the machine's 16"),
        ({"usable_cores": 0.5}, "export OMP_NUM_THREADS=1"),
    ],
    "busy-cores": [
        ({"load": 30.0}, "--threads 1"),
        ({"load": 12.5}, "is 12.5 on 16 cores: other processes compute too"),
        ({"load": 12.5}, "or write --threads 3"),
    ],
    "cuda-launch-blocking": [(flags(CUDA_LAUNCH_BLOCKING="1"), "unset CUDA_LAUNCH_BLOCKING")],
    "torch-use-cuda-dsa": [(flags(TORCH_USE_CUDA_DSA="1"), "unset TORCH_USE_CUDA_DSA")],
    "pytorch-no-cuda-memory-caching": [(flags(PYTORCH_NO_CUDA_MEMORY_CACHING="1"), "unset")],
    "torchdynamo-disable": [(flags(TORCHDYNAMO_DISABLE="1"), "--compile has no effect")],
    "torch-compile-disable": [(flags(TORCH_COMPILE_DISABLE="1"), "--compile has no effect")],
    "tf32-override": [(flags(NVIDIA_TF32_OVERRIDE="0"), "unset NVIDIA_TF32_OVERRIDE")],
    "anomaly-detection": [({"anomaly_detection": True}, "set_detect_anomaly(True)")],
    "no-cublas-workspace": [({"deterministic": True}, "CUBLAS_WORKSPACE_CONFIG=:4096:8")],
}
RIGHT = [
    {},
    gpu(8, 6),  # sm_80 runs there
    gpu(12, 0),  # by compute_90
    {"driver_cuda": "13.0"},
    {"driver_cuda": "12.2"},
    {"shared_memory": None, "open_files": None, "free_disk": None},
    flags(OMP_NUM_THREADS="16"),
    {"load": 11.9},
    flags(OMP_NUM_THREADS="1") | {"threads": 1, "ranks": dict.fromkeys(
        ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"), "2")},
    flags(CUDA_LAUNCH_BLOCKING="0", TORCH_USE_CUDA_DSA="", PYTHONHASHSEED="0"),
    flags(CUDA_VISIBLE_DEVICES="0"),
    {"deterministic": True} | flags(CUBLAS_WORKSPACE_CONFIG=":4096:8"),
]  # fmt: skip
CASES = [(name, *case) for name, cases in WRONG.items() for case in cases]


@pytest.mark.parametrize(("name", "facts", "words"), CASES)
def test_each_misconfiguration_is_one_line_with_what_to_type(
    name: str, facts: dict[str, Any], words: str
) -> None:
    [found] = misconfigurations(replace(FINE, **facts))
    assert found.name == name
    assert words in found.message
    assert "\n" not in found.message
    assert found.message.count(": ") >= 1


@pytest.mark.parametrize("facts", RIGHT)
def test_a_right_machine_has_none(facts: dict[str, Any]) -> None:
    assert misconfigurations(replace(FINE, **facts)) == []


def test_a_machine_without_a_gpu_has_none() -> None:
    assert misconfigurations(NO_GPU) == []
    assert misconfigurations(replace(NO_GPU, variables={"CUDA_VISIBLE_DEVICES": ""})) == []
    assert misconfigurations(replace(NO_GPU, deterministic=True)) == []


def test_several_are_listed_with_the_graver_first() -> None:
    found = misconfigurations(replace(FINE, torch_cuda=None, gpus=(), anomaly_detection=True))
    assert [each.name for each in found] == ["torch-without-cuda", "anomaly-detection"]
    shown = as_text(replace(FINE, anomaly_detection=True), found)
    assert "\n2 likely misconfigurations:\n  torch 2.13.0+cu126 is built without" in shown


def test_the_text_has_every_fact() -> None:
    shown = as_text(FINE, [])
    for words in (
        "trueloop 0.1.0, python 3.11.7, torch 2.13.0+cu126", "optuna 5.0", "wandb", "A processor",
        "16 cores, 16 threads", "60.0 of 64.0 GB free; /dev/shm 32.00 GB", "NVIDIA H100, 80.0 GB",
        "sm_90", "driver 560.35", "one process", "/work/runs, 500.0 GB free", "hash seed",
        "no likely misconfigurations",
    ):  # fmt: skip
        assert words in shown
    assert "16 threads of torch, load 3.2" in as_text(replace(FINE, load=3.21), [])
    assert "2.5 of 16 cores" in as_text(replace(FINE, usable_cores=2.5), [])
    assert "RANK=1" in as_text(replace(FINE, ranks={"RANK": "1"}), [])


def test_json_has_the_fields_and_the_misconfigurations() -> None:
    facts = replace(FINE, anomaly_detection=True)
    plain = json.loads(as_json(facts, misconfigurations(facts)))
    assert plain["gpus"] == [{"name": "NVIDIA H100", "memory": 80 * GB, "capability": [9, 0]}]
    assert [each["name"] for each in plain["misconfigurations"]] == ["anomaly-detection"]


def test_the_facts_are_those_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TORCH_USE_CUDA_DSA", "1")
    monkeypatch.setenv("LOCAL_RANK", "3")
    facts = machine(tmp_path / "not" / "yet")
    assert facts.versions["torch"] == torch.__version__
    assert facts.cores == os.cpu_count()
    assert 0 < facts.usable_cores <= facts.cores
    assert facts.threads == torch.get_num_threads()
    assert len(facts.gpus) == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
    assert facts.variables["TORCH_USE_CUDA_DSA"] == "1"
    assert facts.ranks["LOCAL_RANK"] == "3"
    assert facts.load is None or facts.load >= 0
    assert facts.extras["optuna"]
    assert "ruff" not in facts.extras
    assert facts.free_disk is not None
    assert not (tmp_path / "not").exists()
    with torch.autograd.set_detect_anomaly(True, check_nan=False):
        assert machine(tmp_path).anomaly_detection


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "50000 100000\n"}, 0.5),
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "50000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 0.5),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "nonsense"}, None),
        ({}, None),
    ],
)
def test_the_cores_of_a_container(
    files: dict[str, str], cores: float | None, tmp_path: Path
) -> None:
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    affinity = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    assert usable_cores(tmp_path) == (affinity if cores is None else cores)


def test_what_the_driver_prints() -> None:
    page = "| NVIDIA-SMI 535.161.08   Driver Version: 535.161.08   CUDA Version: 12.2     |\n"
    listed = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\nGPU 1: NVIDIA L4 (UUID: GPU-2)\n"
    assert read_driver(page, listed) == {
        "version": "535.161.08", "cuda": "12.2", "names": ["NVIDIA H100 80GB HBM3", "NVIDIA L4"],
    }  # fmt: skip
    assert read_driver("", "") == {"version": None, "cuda": None, "names": []}


def test_the_command(command: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(_machine.shutil, "which", lambda name: None)
    said = command("env")
    assert (said.status, said.err) == (0, "")
    assert f"torch {torch.__version__}" in said.out
    plain = json.loads(command("env", "--format", "json").out)
    assert plain["runs"] == str(tmp_path / "runs")
    assert "unknown format 'xml': known: 'json', 'text'" in command("env", "--format", "xml").err
    assert list(tmp_path.iterdir()) == []
