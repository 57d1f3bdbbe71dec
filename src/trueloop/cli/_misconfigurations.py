"""Settings of a machine or of a process that make a training slower, wrong, or impossible."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trueloop.cli._machine import Machine

_MB, _GB = 10**6, 10**9
_LEAST_SHARED = 512 * _MB
"""Of /dev/shm: a container's default of 64 MB holds a few batches of images."""
_LEAST_DISK = 2 * _GB
_LEAST_FILES = 1024
_MOST_LOAD = 0.75
"""Of the machine's cores: above it the threads of a training wait for other processes."""
_NO_GPU = ("", "-1")
_FLAGS = {
    "CUDA_LAUNCH_BLOCKING": "the CPU waits for each CUDA kernel, and training is several times as "
    "slow",
    "TORCH_USE_CUDA_DSA": "CUDA kernels trace their assertions, and training is slower",
    "PYTORCH_NO_CUDA_MEMORY_CACHING": "each tensor's memory is asked of the CUDA driver, and "
    "training is many times as slow",
    "TORCHDYNAMO_DISABLE": "torch.compile compiles nothing, and --compile has no effect",
    "TORCH_COMPILE_DISABLE": "torch.compile compiles nothing, and --compile has no effect",
}
"""Flags that are for debugging, and their effect."""


@dataclass(frozen=True)
class Misconfiguration:
    """One setting that is likely a mistake."""

    name: str
    """For programs: `omp-num-threads`."""
    message: str
    """One line: the setting, what it does to the training, what to type."""


def misconfigurations(facts: Machine) -> list[Misconfiguration]:
    """Those of a machine, the most harmful first; it looks at nothing but `facts`."""
    parts = (_of_cuda, _of_ranks, _of_places, _of_threads, _of_flags)
    return [found for part in parts for found in part(facts)]


def _of_cuda(facts: Machine) -> Iterator[Misconfiguration]:
    visible = facts.variables.get("CUDA_VISIBLE_DEVICES")
    newest = _version(facts.driver_cuda)
    if facts.nvidia and visible is not None and visible.strip() in _NO_GPU:
        yield Misconfiguration(
            "no-visible-gpu",
            f"CUDA_VISIBLE_DEVICES={visible!r} hides all {len(facts.nvidia)} GPUs, and training "
            "runs on the CPU: write unset CUDA_VISIBLE_DEVICES",
        )
    elif facts.nvidia and facts.torch_cuda is None:
        yield Misconfiguration(
            "torch-without-cuda",
            f"torch {facts.versions['torch']} is built without CUDA, and the {facts.nvidia[0]} is "
            "not used: install a build with CUDA, see https://pytorch.org/get-started/locally",
        )
    elif newest and facts.torch_cuda and newest[0] < _version(facts.torch_cuda)[0]:
        yield Misconfiguration(
            "old-driver",
            f"the driver {facts.driver} runs CUDA up to {facts.driver_cuda}, and torch is built "
            f"for CUDA {facts.torch_cuda}: no GPU is used: update the driver, or install torch for "
            f"CUDA {newest[0]}",
        )
    elif facts.nvidia and not facts.gpus:
        yield Misconfiguration(
            "cuda-unavailable",
            f"the driver sees the {facts.nvidia[0]}, and torch does not: training runs on the CPU: "
            'look for the reason with python -c "import torch; torch.cuda.init()"',
        )
    for number, gpu in enumerate(facts.gpus):
        if not _has_kernels(gpu.capability, facts.torch_arches):
            arch = "sm_{}{}".format(*gpu.capability)
            yield Misconfiguration(
                "no-kernels",
                f"torch has no kernels for cuda:{number} ({gpu.name}, {arch}), and the first "
                "operation on it fails: install a torch build for it, see "
                "https://pytorch.org/get-started/locally",
            )


def _has_kernels(capability: tuple[int, int], arches: tuple[str, ...]) -> bool:
    """Whether one of `arches` runs there: sm_80 on 8.6 too, compute_80 on all that is newer."""
    major, minor = capability
    for arch in arches:
        kind, _, number = arch.partition("_")
        if not number.rstrip("af").isdecimal():
            return True  # a name that is not known here
        its_major, its_minor = divmod(int(number.rstrip("af")), 10)
        if kind == "compute" and (its_major, its_minor) <= (major, minor):
            return True
        if its_major == major and its_minor <= minor:
            return True
    return not arches


def _version(text: str | None) -> tuple[int, ...]:
    parts = (text or "").split(".")
    return tuple(int(part) for part in parts if part.isdecimal())


def _of_ranks(facts: Machine) -> Iterator[Misconfiguration]:
    found = facts.ranks
    if found.get("WORLD_SIZE", "1") != "1":
        missing = [name for name in ("RANK", "MASTER_ADDR", "MASTER_PORT") if name not in found]
        if missing:
            yield Misconfiguration(
                "half-a-launch",
                f"WORLD_SIZE={found['WORLD_SIZE']} is set and {', '.join(missing)} is not: a "
                "training waits for other ranks or fails: write unset WORLD_SIZE, or start it with "
                "torchrun",
            )
    if facts.variables.get("TORCH_DISTRIBUTED_DEBUG") == "DETAIL":
        yield Misconfiguration(
            "distributed-debug",
            "TORCH_DISTRIBUTED_DEBUG=DETAIL checks each collective on all ranks, and training is "
            "slower: write unset TORCH_DISTRIBUTED_DEBUG",
        )


def _of_places(facts: Machine) -> Iterator[Misconfiguration]:
    if not facts.is_writable:
        yield Misconfiguration(
            "runs-not-writable",
            f"{facts.runs} cannot be written, and a run ends before it begins: choose a different "
            "place with --run DIR",
        )
    if facts.free_disk is not None and facts.free_disk < _LEAST_DISK:
        yield Misconfiguration(
            "little-disk",
            f"{facts.runs} has {facts.free_disk / _GB:.1f} GB free, and a run stops when a "
            "checkpoint does not fit: free some space, or write --run to a different disk",
        )
    shared = facts.shared_memory
    if shared is not None and shared < _LEAST_SHARED:
        yield Misconfiguration(
            "little-shared-memory",
            f"/dev/shm has {shared / _MB:.0f} MB, through which workers pass batches: they die "
            "with a bus error when it is full: write docker run --shm-size=8g, or --workers 0",
        )
    if facts.open_files is not None and facts.open_files < _LEAST_FILES:
        yield Misconfiguration(
            "few-open-files",
            f"a process may open {facts.open_files} files, and workers need some for each batch: "
            "they fail with 'too many open files': write ulimit -n 65536",
        )


def _of_threads(facts: Machine) -> Iterator[Misconfiguration]:
    cores, asked = max(math.floor(facts.usable_cores), 1), facts.variables.get("OMP_NUM_THREADS")
    one_process = facts.ranks.get("WORLD_SIZE", "1") == "1"
    if asked == "1" and cores > 1 and one_process:
        yield Misconfiguration(
            "one-thread",
            f"OMP_NUM_THREADS=1: torch computes on 1 of {cores} cores, and training is slower: "
            f"write unset OMP_NUM_THREADS, or --threads {cores}",
        )
    elif facts.threads > cores:
        why = "" if facts.usable_cores == facts.cores else f" of the machine's {facts.cores}"
        yield Misconfiguration(
            "more-threads-than-cores",
            f"torch computes on {facts.threads} threads, and this process may use {cores} cores"
            f"{why}: the threads wait for each other, and training is slower: write "
            f"export OMP_NUM_THREADS={cores}",
        )
    if facts.load is not None and facts.load > _MOST_LOAD * facts.cores:
        yield Misconfiguration(
            "busy-cores",
            f"the load of the last minute is {facts.load:.1f} on {facts.cores} cores: other "
            "processes compute too, each thread waits for a core, and training is slower: look for "
            f"them with top, or write --threads {max(math.floor(cores - facts.load), 1)}",
        )


def _of_flags(facts: Machine) -> Iterator[Misconfiguration]:
    for name, effect in _FLAGS.items():
        value = facts.variables.get(name, "0")
        if value.lower() not in ("", "0", "false"):
            shown = name.lower().replace("_", "-")
            yield Misconfiguration(shown, f"{name}={value}: {effect}: write unset {name}")
    if facts.variables.get("NVIDIA_TF32_OVERRIDE") == "0":
        yield Misconfiguration(
            "tf32-override",
            "NVIDIA_TF32_OVERRIDE=0: float32 matrices are multiplied without TF32, and --matmul "
            "tf32 has no effect: write unset NVIDIA_TF32_OVERRIDE",
        )
    if facts.anomaly_detection:
        yield Misconfiguration(
            "anomaly-detection",
            "torch's anomaly detection is on: each operation of the backward pass is checked, and "
            "training is several times as slow: remove torch.autograd.set_detect_anomaly(True)",
        )
    if facts.deterministic and facts.gpus and "CUBLAS_WORKSPACE_CONFIG" not in facts.variables:
        yield Misconfiguration(
            "no-cublas-workspace",
            "deterministic algorithms are on and CUBLAS_WORKSPACE_CONFIG is not set: a matrix "
            "product on CUDA raises an error: write export CUBLAS_WORKSPACE_CONFIG=:4096:8",
        )
