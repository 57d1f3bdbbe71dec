"""Devices by name, and one clear line for those that are not there."""

from __future__ import annotations

import pytest
import torch

from trueloop import device
from trueloop.errors import DeviceError


def test_auto_and_cpu() -> None:
    assert device.pick("cpu") == torch.device("cpu")
    assert device.pick("auto").type in ("cpu", "cuda", "mps")
    assert device.is_immediate(torch.device("cpu"))
    assert device.describe(torch.device("cpu"))["device"] == "cpu"


@pytest.mark.parametrize("name", ["gpu", "cuda:x", "", "meta", "xla"])
def test_unknown_devices(name: str) -> None:
    with pytest.raises(DeviceError, match="write auto, cpu, cuda, cuda:N or mps"):
        device.pick(name)


@pytest.mark.parametrize("name", ["cpu:1", "mps:1"])
def test_of_some_devices_there_is_one(name: str) -> None:
    with pytest.raises(DeviceError, match=f"no {name}: write {name[:3]}"):
        device.pick(name)


@pytest.mark.skipif(torch.cuda.is_available(), reason="needs a machine without CUDA")
def test_a_device_that_is_not_there() -> None:
    with pytest.raises(DeviceError, match="--device cpu") as e:
        device.pick("cuda")
    assert "\n" not in str(e.value)


def test_cuda_has_a_number_and_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread needs the number to choose its device; a process that has used a GPU cannot fork."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: pytest.fail("this starts CUDA"))
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: False)
    for name in ("auto", "cuda", torch.device("cuda")):
        assert device.pick(name) == torch.device("cuda:0")
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)
    assert device.pick("cuda") == torch.device("cuda:1")
    assert device.pick("cuda:0") == torch.device("cuda:0")


def test_more_processes_than_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert device.pick("auto") == device.pick("cuda") == torch.device("cuda:1")
    monkeypatch.setenv("LOCAL_RANK", "2")
    for name in ("auto", "cuda"):
        with pytest.raises(DeviceError, match="process 3 of this machine has no GPU"):
            device.pick(name)


def test_tf32_is_set_on_cuda_alone_and_put_back() -> None:
    before = torch.get_float32_matmul_precision()
    seen = []

    def fail() -> None:
        with device.matmul_in("tf32", torch.device("cuda")):
            seen.append(torch.get_float32_matmul_precision())
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert seen == ["high"]
    assert torch.get_float32_matmul_precision() == before
    for kind, name in (("fp32", "cuda"), ("tf32", "cpu")):
        with device.matmul_in(kind, torch.device(name)):
            assert torch.get_float32_matmul_precision() == before
