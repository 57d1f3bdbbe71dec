"""A fault of the watcher's own never reaches the program that it watches.

Every function of ours that runs around a program's calls is made to raise, and the program computes
what it computes alone; the fault is told once.
"""

from __future__ import annotations

import inspect
import io
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Subset, TensorDataset

import trueloop.doctor.rules
from trueloop.doctor.live.watcher import Watcher

_PACKAGE = os.path.dirname(os.path.dirname(trueloop.doctor.rules.__file__))
_OURS = tuple(os.path.join(_PACKAGE, each, "") for each in ("live", "rules"))
_FILES = (os.path.join(_PACKAGE, "events.py"), os.path.join(_PACKAGE, "things.py"))
_GUARDS = frozenset(
    # What catches the errors of all else (each is one `try`, from its first line to its last), and
    # `forget`, which Python calls when an object is gone.
    "guarded __call__ can_read failed enter leave turn steps has_stepped _broke is_here see"
    " _leave_alone _stand_in _is_on_gpu _without_graph hook put_on take_off undo"
    " refresh_call_patch forget".split()
)
_BEGINNING = 8
"""Bytes of a generator's code before its body."""
UPDATES = 70


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(6, 6), nn.Linear(6, 3)
        self.drop = nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = F.dropout(self.drop(F.relu(self.first(x))), 0.1)
        return self.last(checkpoint(F.softmax, x, 1, use_reentrant=False, preserve_rng_state=False))


def program() -> list[Any]:
    """Goes through whatever is put into torch, long enough for it to be looked at, timed, and left
    alone."""
    torch.manual_seed(0)
    said: list[Any] = []
    data = TensorDataset(torch.randn(28, 6), torch.randint(0, 3, (28,)))
    loader = DataLoader(Subset(data, range(28)), 4, shuffle=True)
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda count: 0.99**count)
    scaler = torch.amp.GradScaler("cpu", init_scale=2.0)
    updates = 0
    while updates < UPDATES:
        model.train()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            scaler.scale(loss).backward()
            scaler.unscale_(optimizer)
            said.append([each.grad.norm().item() for each in model.parameters()])  # type: ignore[union-attr]
            nn.utils.clip_grad_norm_((each for each in model.parameters()), 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            updates += 1
        model.eval()
        with torch.no_grad():
            said.append([F.cross_entropy(model(x), y).item() for x, y in loader])
        file = io.BytesIO()
        torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        file.seek(0)
        model.load_state_dict(torch.load(file)["model"])
        model.zero_grad()
        x = torch.ones(2, 6, requires_grad=True)
        (slope,) = torch.autograd.grad(model(x).sum(), x)
        said.append(slope.tolist())
        random = torch.get_rng_state()
        torch.set_rng_state(random)
    said += [each.tolist() for each in model.parameters()] + [torch.rand(3).tolist()]
    return said


class Faults:
    """Raises in functions of ours, as they are called."""

    def __init__(self, is_due: Callable[[str, int], bool]) -> None:
        self._is_due = is_due
        self.calls: Counter[str] = Counter()
        self.raised: Counter[str] = Counter()

    def trace(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        path = code.co_filename
        if not path.startswith(_OURS) and path not in _FILES:
            return
        if code.co_name in _GUARDS or code.co_name.startswith("<"):
            return
        if code.co_flags & inspect.CO_GENERATOR and frame.f_lasti > _BEGINNING:
            return  # it goes on, or is closed by Python
        name = f"{os.path.basename(path)}:{code.co_qualname}"
        self.calls[name] += 1
        if self._is_due(name, self.calls[name]):
            self.raised[name] += 1
            raise _KINDS[len(self.raised) % len(_KINDS)](name)


_KINDS = (RuntimeError, KeyError, RecursionError, TypeError, StopIteration, MemoryError)


@pytest.fixture(scope="module")
def alone() -> list[Any]:
    program()
    return program()


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    watcher = Watcher()
    watcher.nonfinite.bundles = ""
    yield watcher
    sys.settrace(None)
    watcher.stop()


def run_with(faults: Faults, watcher: Watcher) -> list[Any]:
    """Python takes a trace function off that raises: it is put on again by what notes the fault."""
    hub = watcher.hub
    failed = hub.failed

    def note(error: Exception, *, missed: bool = False) -> None:
        sys.settrace(None)
        failed(error, missed=missed)
        sys.settrace(faults.trace)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(hub, "failed", note)
        watcher.recorder.failed = watcher.nonfinite.calls._failed = note
        watcher.start()
        sys.settrace(faults.trace)
        try:
            return program()
        finally:
            sys.settrace(None)


ONCE = {
    "each function at its first call": lambda name, count: count == 1,
    "each at its second call": lambda name, count: count == 2,
    "now and then": lambda name, count: (hash_of(name) + count) % 7 == 0,
    "late": lambda name, count: count == 40,
    "all, always": lambda name, count: True,
}


def hash_of(name: str) -> int:
    return sum(map(ord, name))


@pytest.mark.filterwarnings("error::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("when", list(ONCE))
def test_no_fault_of_ours_is_seen(when: str, alone: list[Any], watcher: Watcher) -> None:
    faults = Faults(ONCE[when])
    assert run_with(faults, watcher) == alone
    assert faults.raised
    watcher.stop()
    told = {found.code for found in watcher.findings() if found.severity != "advice"}
    assert told <= {"TL206"}  # which the program has; nothing comes of what was missed
    assert watcher.hub.errors
    assert len(watcher.hub.errors) == len(set(watcher.hub.errors))
