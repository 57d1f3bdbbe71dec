"""Which device to use and what it can do."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from trueloop._options import shown
from trueloop.errors import DeviceError

_CPU = "write the device auto or cpu (--device cpu)"


def pick(name: str | torch.device = "auto") -> torch.device:
    """The device called `name`: `auto`, `cpu`, `cuda`, `cuda:1`, `mps`.

    `auto` is CUDA if there is one, else Apple's MPS, else the CPU. Under `torchrun`, `auto` and
    `cuda` are the GPU of this process's number on its host. Raises `DeviceError` when the device is
    unknown or not there.
    """
    text = str(name).strip().lower() if isinstance(name, (str, torch.device)) else shown(name)
    if text == "auto":
        if torch.cuda.is_available():
            return _of_this_process() or _current()
        return torch.device("mps" if torch.backends.mps.is_available() else "cpu")
    try:
        device = torch.device(text)
    except RuntimeError:
        raise DeviceError(
            f"unknown device {text!r}: write auto, cpu, cuda, cuda:N or mps"
        ) from None
    if device.type in ("cpu", "mps") and device.index:
        raise DeviceError(f"there is one {device.type} only, no {text}: write {device.type}")
    if device.type == "cuda":
        _check_cuda(device)
        if ":" not in text:
            device = _of_this_process() or _current()
    elif device.type == "mps" and not torch.backends.mps.is_available():
        raise DeviceError(f"no MPS device in this machine: {_CPU}")
    elif device.type not in ("cpu", "mps"):
        raise DeviceError(f"unknown device {text!r}: write auto, cpu, cuda, cuda:N or mps")
    return device


def _of_this_process() -> torch.device | None:
    """The GPU with this process's number on its host, as `torchrun` counts; None without it."""
    number = os.environ.get("LOCAL_RANK", "")
    if not number.isdecimal():
        return None
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if count and int(number) >= count:
        raise DeviceError(
            f"process {int(number) + 1} of this machine has no GPU, there are only {count}: write "
            f"torchrun --nproc-per-node {count}, or --device cpu"
        )
    return torch.device("cuda", int(number))


def _current() -> torch.device:
    """torch's current GPU, without touching one: forked processes could not use any after that."""
    is_started = torch.cuda.is_initialized()  # type: ignore[no-untyped-call]
    return torch.device("cuda", torch.cuda.current_device() if is_started else 0)


def _check_cuda(device: torch.device) -> None:
    if not torch.cuda.is_available():
        why = (
            f"this torch ({torch.__version__}) was built without CUDA"
            if torch.version.cuda is None
            else "torch sees no CUDA device in this machine"
        )
        raise DeviceError(f"device 'cuda' is not there, {why}: {_CPU}")
    count = torch.cuda.device_count()
    if device.index is not None and device.index >= count:
        raise DeviceError(
            f"device '{device}' is not there: this machine has cuda:0 to cuda:{count - 1}"
        )


OUT_OF_MEMORY = re.compile(
    r"can't allocate memory|not enough memory|out of memory|Unable to allocate|"
    r"Cannot allocate memory|STATUS_ALLOC_FAILED",
    re.IGNORECASE,
)
"""The texts of torch's, numpy's, the operating system's, cuBLAS's and cuDNN's messages then."""


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the error is that memory ran out. On the CPU, and for the libraries of CUDA that take
    memory themselves, torch raises a bare RuntimeError, which only its text distinguishes from
    others."""
    if isinstance(error, (MemoryError, torch.OutOfMemoryError)):
        return True
    return isinstance(error, RuntimeError) and bool(OUT_OF_MEMORY.search(str(error)))


@contextmanager
def matmul_in(kind: str, device: torch.device) -> Iterator[None]:
    """Within it, float32 products of matrices on a CUDA device are computed as `kind` says: `fp32`
    changes nothing, `tf32` rounds their factors to 10 bits of mantissa for the tensor cores.
    Other devices compute as before."""
    if kind == "fp32" or device.type != "cuda":
        yield
        return
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)


def is_immediate(device: torch.device) -> bool:
    """Whether reading a number from the device costs no wait (true only of the CPU)."""
    return device.type == "cpu"


def describe(device: torch.device) -> dict[str, Any]:
    """Name, kind and size of the device, for the run's environment."""
    facts: dict[str, Any] = {"device": str(device)}
    if device.type == "cuda":
        properties = torch.cuda.get_device_properties(device)
        facts["name"] = properties.name
        facts["memory_bytes"] = properties.total_memory
        facts["capability"] = f"{properties.major}.{properties.minor}"
    else:
        facts["name"] = platform.processor() or platform.machine()
        facts["cores"] = os.cpu_count()
        facts["threads"] = torch.get_num_threads()
    return facts
