"""What is noted of the updates between two looks: the same whether in a few steps or in all.

The functions that train here have no `assert`: pytest makes one look at all variables, and then the
watcher does not read them.
"""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from trueloop.doctor.runtime.between import Between
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
        noted += watcher.between.on
        if update % 40 == 39:
            with torch.no_grad():
                F.cross_entropy(model(x), y)
    watcher.between.leave()
    stream: Any = watcher.progress.stream
    health = watcher.health
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
    monkeypatch.setattr(Between, "begin", lambda between: None)
    whole, none = watched()
    assert repr(quick) == repr(whole)
    assert (noted > 0, none) == (True, 0), noted
