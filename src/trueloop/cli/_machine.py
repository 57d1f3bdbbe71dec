"""The facts about this machine and this process that decide how a training runs."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

_CGROUP = Path("/sys/fs/cgroup")
_SHARED = Path("/dev/shm")
_ASK_SECONDS = 5.0
_NOT_EXTRAS = ("dev", "docs", "peers")
VARIABLES = (
    "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTHONHASHSEED", "CUDA_VISIBLE_DEVICES",
    "CUDA_LAUNCH_BLOCKING", "TORCH_USE_CUDA_DSA", "CUBLAS_WORKSPACE_CONFIG",
    "PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_NO_CUDA_MEMORY_CACHING", "NVIDIA_TF32_OVERRIDE",
    "TORCHDYNAMO_DISABLE", "TORCH_COMPILE_DISABLE", "TORCH_LOGS", "TORCH_DISTRIBUTED_DEBUG",
    "PYTORCH_ENABLE_MPS_FALLBACK",
)  # fmt: skip
"""Variables of the environment that change how torch trains."""
OF_RANKS = re.compile(
    r"RANK|WORLD_SIZE|LOCAL_RANK|LOCAL_WORLD_SIZE|MASTER_ADDR|MASTER_PORT|NCCL_\w+|GLOO_\w+"
    r"|TORCHELASTIC_RUN_ID|SLURM_(PROCID|NTASKS|LOCALID)"
)
"""Those that say how ranks find each other."""


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One CUDA device that torch sees."""

    name: str
    memory: int
    """Bytes."""
    capability: tuple[int, int]
    """8, 0 is sm_80."""


@dataclass(frozen=True, kw_only=True)
class Machine:
    """The machine, the libraries and the process's settings. Sizes are in bytes."""

    versions: Mapping[str, str]
    """Of trueloop, Python, torch and numpy."""
    extras: Mapping[str, str | None]
    """Versions of the packages of the extras; None for one that is not installed."""
    system: str
    cpu: str
    """The processor's name."""
    cores: int
    """Of the machine."""
    usable_cores: float
    """Those that this process may use, by its affinity and its cgroup."""
    threads: int
    """That torch computes an operation on."""
    interop_threads: int
    load: float | None = None
    """Processes of the whole machine that computed or waited for a core, on average over the last
    minute; None where the system does not count them."""
    memory: int
    free_memory: int
    shared_memory: int | None
    """Size of /dev/shm; None where there is none."""
    open_files: int | None
    """The limit; None where there is none."""
    torch_cuda: str | None
    """The CUDA version that torch was built for; None for a build without CUDA."""
    torch_arches: tuple[str, ...] = ()
    """The GPUs that torch has kernels for: sm_80."""
    gpus: tuple[Gpu, ...] = ()
    nvidia: tuple[str, ...] = ()
    """Names of the NVIDIA GPUs that the driver sees, whatever torch can use."""
    driver: str | None = None
    driver_cuda: str | None = None
    """The newest CUDA version that the driver runs."""
    mps: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    """Those of `VARIABLES` that are set."""
    ranks: Mapping[str, str] = field(default_factory=dict)
    """Those of `OF_RANKS` that are set."""
    deterministic: bool = False
    anomaly_detection: bool = False
    runs: str = ""
    """The folder of runs."""
    free_disk: int | None = None
    """At the folder of runs."""
    is_writable: bool = True


def machine(runs: Path) -> Machine:
    """The facts as they are now; `runs` is the folder of runs, which need not exist."""
    import numpy
    import torch

    import trueloop

    usable, memory, driver = usable_cores(), _memory(), _driver()
    existing = next(path for path in (runs, *runs.absolute().parents) if path.exists())
    return Machine(
        versions={
            "trueloop": trueloop.__version__,
            "python": platform.python_version(),
            "torch": str(torch.__version__),
            "numpy": numpy.__version__,
        },
        extras=extras(),
        system=platform.platform(),
        cpu=_cpu_name(),
        cores=os.cpu_count() or 1,
        usable_cores=usable,
        threads=torch.get_num_threads(),
        interop_threads=torch.get_num_interop_threads(),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        memory=memory.get("MemTotal", 0),
        free_memory=memory.get("MemAvailable", 0),
        shared_memory=shutil.disk_usage(_SHARED).total if _SHARED.is_dir() else None,
        open_files=_open_files(),
        torch_cuda=torch.version.cuda,
        torch_arches=tuple(torch.cuda.get_arch_list()),
        gpus=_gpus(torch),
        nvidia=tuple(driver["names"]),
        driver=driver["version"],
        driver_cuda=driver["cuda"],
        mps=torch.backends.mps.is_available(),
        variables={name: os.environ[name] for name in VARIABLES if name in os.environ},
        ranks={n: v for n, v in sorted(os.environ.items()) if OF_RANKS.fullmatch(n)},
        deterministic=torch.are_deterministic_algorithms_enabled(),
        anomaly_detection=torch.is_anomaly_enabled(),
        runs=str(runs.absolute()),
        free_disk=shutil.disk_usage(existing).free,
        is_writable=os.access(existing, os.W_OK),
    )


def extras() -> dict[str, str | None]:
    """The packages of trueloop's extras, each with its version."""
    found: dict[str, str | None] = {}
    try:
        required = metadata.requires("trueloop") or []
    except metadata.PackageNotFoundError:
        return {}
    for line in required:
        match = re.match(r"([\w.-]+)(?:\[.*?\])?.*extra == ['\"]([\w-]+)['\"]", line)
        if match is None or match[2] in _NOT_EXTRAS or match[1] == "trueloop":
            continue
        try:
            found[match[1]] = metadata.version(match[1])
        except metadata.PackageNotFoundError:
            found[match[1]] = None
    return found


def usable_cores(cgroup: Path = _CGROUP) -> float:
    """Cores by the affinity of the process, or fewer by the limit of its container (cgroup)."""
    has_affinity = hasattr(os, "sched_getaffinity")
    cores = float(len(os.sched_getaffinity(0)) if has_affinity else os.cpu_count() or 1)
    with suppress(OSError, ValueError, ZeroDivisionError):  # version 2
        quota, period = (cgroup / "cpu.max").read_text("utf-8").split()
        return min(cores, int(quota) / int(period)) if quota != "max" else cores
    with suppress(OSError, ValueError, ZeroDivisionError):  # version 1
        amount = int((cgroup / "cpu/cpu.cfs_quota_us").read_text("utf-8"))
        period = (cgroup / "cpu/cpu.cfs_period_us").read_text("utf-8")
        return min(cores, amount / int(period)) if amount > 0 else cores
    return cores


def _cpu_name() -> str:
    with suppress(OSError):
        found = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text("utf-8"))
        if found is not None:
            return found[1].strip()
    return platform.processor() or platform.machine()


def _memory() -> dict[str, int]:
    """Lines of /proc/meminfo in bytes; empty where there is none."""
    with suppress(OSError):
        text = Path("/proc/meminfo").read_text("utf-8")
        return {name: 1024 * int(kb) for name, kb in re.findall(r"(\w+):\s+(\d+) kB", text)}
    return {}


def _open_files() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return None if limit == resource.RLIM_INFINITY else limit


def _gpus(torch: Any) -> tuple[Gpu, ...]:
    if not torch.cuda.is_available():
        return ()
    found = map(torch.cuda.get_device_properties, range(torch.cuda.device_count()))
    return tuple(
        Gpu(name=gpu.name, memory=gpu.total_memory, capability=(gpu.major, gpu.minor))
        for gpu in found
    )


def _driver() -> dict[str, Any]:
    """The NVIDIA driver's version, its newest CUDA version and the GPUs that it sees."""
    found: dict[str, Any] = {"version": None, "cuda": None, "names": []}
    program = shutil.which("nvidia-smi")
    if program is None:
        return found
    try:
        answer = subprocess.run([program], capture_output=True, text=True, timeout=_ASK_SECONDS)
        listed = subprocess.run(
            [program, "--list-gpus"], capture_output=True, text=True, timeout=_ASK_SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        return found
    return read_driver(answer.stdout, listed.stdout if listed.returncode == 0 else "")


def read_driver(page: str, listed: str) -> dict[str, Any]:
    """The facts in what `nvidia-smi` and `nvidia-smi --list-gpus` print."""
    version = re.search(r"Driver Version:\s*([\d.]+)", page)
    cuda = re.search(r"CUDA Version:\s*([\d.]+)", page)
    return {
        "version": version and version[1],
        "cuda": cuda and cuda[1],
        "names": re.findall(r"GPU \d+: (.*?) \(UUID", listed),
    }
