"""What is noted of the updates between two looks: the same whether in a few steps or in all."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from trueloop.doctor.runtime import watcher as watching
from trueloop.doctor.runtime.watcher import FIRST, Watcher

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
        noted += watcher.between is not None
        if update % 40 == 39:
            with torch.no_grad():
                F.cross_entropy(model(x), y)
    stream, health = watcher.progress.stream, watcher.health
    assert stream is not None
    stream.settle()
    series = stream.evaluations.series.values()
    told = (
        watcher.updates, stream.updates, list(stream.jumps.losses), stream.jumps.limit,
        list(stream.jumps._norms), stream.course.values(), list(health.recent),
        [vars(each) | {"where": None} for each in series],
    )  # fmt: skip
    return told, noted


@pytest.mark.parametrize("accumulate", [1, 3])
def test_the_same_is_noted(accumulate: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def watched() -> tuple[Any, int]:
        watcher = Watcher()
        watcher.clock.next = 1 << 62  # what is timed is not the same twice
        watcher.start()
        try:
            told = train(watcher, accumulate=accumulate)
        finally:
            watcher.stop()
        assert watcher.errors == []
        return told

    quick, noted = watched()
    monkeypatch.setattr(watching, "between", lambda watcher: None)
    whole, none = watched()
    assert repr(quick) == repr(whole)
    assert (noted > 0, none) == (True, 0), noted


def test_a_gradient_that_is_not_finite_is_found_at_its_update(watcher: Watcher) -> None:
    """The loss is finite: the gradient of a square root at 0 is not."""
    torch.manual_seed(0)
    model = nn.Linear(4, 4)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.rand(8, 4)
    for update in range(FIRST + 60):
        if update == FIRST + 45:
            assert watcher.between is not None
            x = x * 0
            with torch.no_grad():
                model.bias.zero_()
        loss = model(x).relu().sqrt().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    (found,) = [each for each in watcher.findings() if each.code == "TH101"]
    assert f"update {FIRST + 46}" in found.message


def test_nothing_is_noted_where_another_mode_sees_the_operations(watcher: Watcher) -> None:
    from torch.utils._python_dispatch import TorchDispatchMode

    class Names(TorchDispatchMode):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[str] = []

        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            self.seen.append(str(func))
            return func(*args, **(kwargs or {}))

    train(watcher)
    assert watcher.between is not None
    weight = nn.Parameter(torch.ones(3))
    with Names() as names:
        (weight * 2).sum().backward()
    assert not any("dot" in each or "scalar" in each for each in names.seen)
