"""Hooks that a program has an optimizer run after its steps."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from trueloop.doctor.live.watcher import Watcher
from trueloop.doctor.model.events import Event, OptimizerStep, ZeroGrad


def test_a_step_is_over_before_the_hooks_of_the_program() -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    watcher = Watcher([])
    events: list[Event] = []
    watcher.recorder.listeners.append(events.append)
    calls: list[str] = []

    def tidy(stepped: torch.optim.Optimizer, args: Any, kwargs: Any) -> None:
        stepped.zero_grad()
        calls.append("tidy")
        if calls.count("tidy") == 2:
            raise InterruptedError

    watcher.start()
    try:
        optimizer = torch.optim.SGD([weight], lr=0.1)
        optimizer.register_step_post_hook(tidy)
        optimizer.register_step_post_hook(lambda *_: calls.append("note"))
        weight.sum().backward()
        optimizer.step()
        with pytest.raises(InterruptedError):
            optimizer.step()
        optimizer.step()
    finally:
        watcher.stop()
    seen = [type(each) for each in events if isinstance(each, (OptimizerStep, ZeroGrad))]
    assert seen == [OptimizerStep, ZeroGrad] * 3
    assert calls == ["tidy", "note", "tidy", "tidy", "note"]
    before = watcher.hub.updates
    optimizer.step()  # the hooks go on when nobody watches any more
    assert calls[5:] == ["tidy", "note"]
    assert watcher.hub.updates == before
    assert watcher.hub.errors == []
