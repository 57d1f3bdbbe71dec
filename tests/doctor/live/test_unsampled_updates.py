"""What is noted of the updates between two looks: the same whether in a few steps or in all.

The functions that train here have no `assert`: pytest makes one look at all variables, and then the
watcher does not read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from trueloop.doctor.live.sampling_schedule import FIRST
from trueloop.doctor.live.unsampled_updates import UnsampledUpdates
from trueloop.doctor.live.watcher import Watcher

UPDATES = FIRST + 190


def train(watcher: Watcher, *, accumulate: int = 1, spoil: Any = None) -> tuple[Any, int]:
    """What a watcher has noted of a run with evaluations in it, and how many updates were noted
    in a few steps."""
    torch.manual_seed(1)
    model = nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 3))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    x, y = torch.randn(32, 6), torch.randint(0, 3, (32,))
    noted = 0
    for update in range(UPDATES):
        for _ in range(accumulate):
            loss = F.cross_entropy(model(x), y)
            loss.backward()
        if spoil is not None:
            spoil(update, x, model)
        optimizer.step()
        optimizer.zero_grad()
        noted += watcher.hub.unsampled.on
        if update % 40 == 39:
            with torch.no_grad():
                F.cross_entropy(model(x), y)
    watcher.hub.unsampled.leave()
    stream: Any = watcher.training.stream
    health = watcher.nonfinite
    stream.settle()
    series = stream.evaluations.series.values()
    told = (
        watcher.hub.updates, stream.updates, list(stream.jumps.losses), stream.jumps.limit,
        list(stream.jumps._norms), stream.course.means(), list(health.recent),
        [vars(each) | {"where": None} for each in series],
    )  # fmt: skip
    return told, noted


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_same_is_noted(accumulate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def watched() -> tuple[Any, int]:
        watcher = Watcher()
        watcher.timer.next = 1 << 62  # what is timed is not the same twice
        watcher.start()
        try:
            told = train(watcher, accumulate=accumulate)
        finally:
            watcher.stop()
        assert watcher.hub.errors == []
        return told

    quick, noted = watched()
    monkeypatch.setattr(UnsampledUpdates, "begin", lambda between: None)
    whole, none = watched()
    assert repr(quick) == repr(whole)
    assert (noted > 0, none) == (True, 0), noted


class Operations(TorchDispatchMode):
    """Notes what it sees."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def __torch_dispatch__(
        self, func: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        self.seen.append(str(func))
        return func(*args, **(kwargs or {}))


class Root(nn.Module):
    """Its gradient is NaN where two rows are the same, and its value is not."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (x - x[:1] * x.new_ones(1)).square().sum(dim=1)[1:].sqrt()


def run(
    watcher: Watcher | None, *, modes: range = range(0), spoilt: int = -1
) -> tuple[nn.Module, list[str], list[int]]:
    """The model that is trained, what a mode of the program saw in some updates, and the updates
    that were noted in a few steps until they were stepped."""
    torch.manual_seed(2)
    model = nn.Sequential(nn.Linear(4, 3), Root())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    seen: list[str] = []
    noted = []
    y = torch.rand(7)
    for update in range(FIRST + 90):
        x = torch.rand(8, 4)
        if update == spoilt:
            x[3] = x[0]
        mode = Operations() if update in modes else nullcontext()
        with mode:
            loss = F.mse_loss(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            if watcher is not None and watcher.hub.unsampled.on:
                noted.append(update)
            optimizer.step()
        if isinstance(mode, Operations):
            seen += mode.seen
    return model, seen, noted


@pytest.fixture
def watcher() -> Iterator[Watcher]:
    watcher = Watcher()
    watcher.timer.next = 1 << 62  # what is timed is not noted here
    watcher.nonfinite.bundles = ""
    watcher.start()
    yield watcher
    watcher.stop()
    assert watcher.hub.errors == []


def test_a_gradient_that_is_not_finite_between_two_looks(watcher: Watcher) -> None:
    _, _, noted = run(watcher, spoilt=120)
    assert {118, 119} <= set(noted)
    watcher.stop()
    (finding,) = [each for each in watcher.findings() if each.code == "TH101"]
    assert "0.weight" in finding.message, finding.message
    assert "in update 121" in finding.message
    assert "although the loss is finite: it begins in `SqrtBackward0` in `1`" in finding.message


def test_a_dispatch_mode_between_two_looks(watcher: Watcher) -> None:
    modes = range(118, 122)
    watched, seen, noted = run(watcher, modes=modes)
    watcher.stop()
    alone, unwatched, _ = run(None, modes=modes)
    assert seen == unwatched != []
    assert all(map(torch.equal, watched.parameters(), alone.parameters()))
    assert {117, 125} <= set(noted)
    assert not set(noted) & set(modes)
    assert watcher.hub.updates == FIRST + 90
    assert watcher.findings() == []


def test_a_gradient_is_found_after_a_dispatch_mode(watcher: Watcher) -> None:
    run(watcher, modes=range(112, 116), spoilt=130)
    watcher.stop()
    (finding,) = [each for each in watcher.findings() if each.code == "TH101"]
    assert "in update 131" in finding.message
