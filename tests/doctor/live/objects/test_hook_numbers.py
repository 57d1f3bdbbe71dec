"""Hooks of the program have the numbers that they have without the watcher."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn.utils import spectral_norm
from torch.optim.optimizer import register_optimizer_step_post_hook
from torch.utils.hooks import RemovableHandle

from trueloop.doctor.live.watcher import Watcher


def own_hook(module: nn.Module, args: Any) -> None:
    return None


def normed() -> nn.Module:
    return spectral_norm(nn.Linear(3, 1))


def hooked() -> nn.Module:
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 1))
    model[0].register_forward_pre_hook(own_hook)
    return model


def of_state_dict() -> nn.Module:
    model = nn.Linear(3, 1)
    model.register_load_state_dict_pre_hook(own_hook)
    return model


def saved_after_training(make: Callable[[], nn.Module], clears: bool = True) -> bytes:
    torch.manual_seed(0)
    model = make()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for _ in range(60):
        if clears:
            optimizer.zero_grad()
        model(torch.randn(4, 3)).square().mean().backward()
        optimizer.step()
    file = io.BytesIO()
    torch.save(model, file)
    return file.getvalue()


@pytest.mark.parametrize("make", [normed, hooked, of_state_dict])
def test_a_saved_module_is_the_same_watched(make: Callable[[], nn.Module]) -> None:
    saved_after_training(make)  # what torch does for the first time alone
    first = RemovableHandle.next_id
    alone = saved_after_training(make)
    RemovableHandle.next_id = first
    watcher = Watcher()
    watcher.start()
    try:
        watched = saved_after_training(make)
    finally:
        watcher.stop()
    assert watched == alone
    assert watcher.hub.errors == []


def test_hooks_on_all_optimizers_do_not_meet() -> None:
    """The program's hook and the watcher's are in one dictionary, by number."""
    seen: list[Any] = []
    watcher = Watcher()
    watcher.start()
    try:
        hook = register_optimizer_step_post_hook(lambda *given: seen.append(given[0]))
        saved_after_training(hooked, clears=False)
        hook.remove()
    finally:
        watcher.stop()
    assert len(seen) == 60
    assert "TL102" in [finding.code for finding in watcher.findings()]
