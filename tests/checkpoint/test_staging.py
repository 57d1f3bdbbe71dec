"""The copy of a state is exact, and its memory ready before it is asked for."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import pytest
import torch

from bits import same
from trueloop.checkpoint import staging as spares
from trueloop.checkpoint.staging import StagingBuffer


def state() -> dict[str, Any]:
    torch.manual_seed(0)
    return {
        "wide": torch.randn(40, 30),
        "turned": torch.randn(30, 40).T,
        "spread": torch.randn(3, 1).expand(3, 4),
        "empty": torch.empty(0),
        "scalar": torch.tensor(2.5),
        "half": torch.randn(7).bfloat16(),
        "sparse": torch.eye(3).to_sparse(),
        "nested": [1, ({"t": torch.arange(5)}, None, "x")],
    }


@pytest.mark.parametrize("prepared", [False, True])
def test_copies_are_exact_and_private_again_and_again(prepared: bool) -> None:
    memory, live = StagingBuffer(), state()
    if prepared:
        memory.prepare(live)
        assert memory.is_prepared
    for k in range(3):
        live["wide"].fill_(k)
        copy = memory.copy(live)
        assert same(copy, live)
        assert copy["turned"].stride() == live["turned"].stride()
        live["wide"].fill_(-1)
        assert copy["wide"].eq(k).all()


def test_the_copy_goes_into_the_memory_that_was_prepared() -> None:
    memory, live = StagingBuffer(), state()
    memory.prepare(live)
    place = memory._copy["wide"].data_ptr()
    assert memory.copy(live)["wide"].data_ptr() == place
    assert memory.copy(live)["wide"].data_ptr() == place


def test_every_page_is_touched_and_nothing_beyond(monkeypatch: pytest.MonkeyPatch) -> None:
    touched: dict[int, int] = {}

    def memset(place: int, value: int, size: int) -> None:
        touched[place] = size

    monkeypatch.setattr(ctypes, "memset", memset)
    monkeypatch.setattr(spares, "_CHUNK", 1000)
    memory = StagingBuffer()
    memory.prepare({"a": torch.zeros(1000), "b": torch.zeros(3)})
    assert memory._thread is not None
    memory._thread.join()
    a, b = memory._copy["a"].data_ptr(), memory._copy["b"].data_ptr()
    assert touched == {a: 1000, a + 1000: 1000, a + 2000: 1000, a + 3000: 1000, b: 12}


def test_a_copy_does_not_wait_for_the_rest_of_the_touching(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, going = [], threading.Event()

    def memset(*_: Any) -> None:
        calls.append(going.wait(10))

    monkeypatch.setattr(ctypes, "memset", memset)
    monkeypatch.setattr(spares, "_CHUNK", 10)
    memory, live = StagingBuffer(), {"w": torch.randn(1000)}
    memory.prepare(live)
    threading.Timer(0.05, going.set).start()
    assert same(memory.copy(live), live)
    assert len(calls) < 400
