"""A state whose tensors lie in memory in a different order than the parameters: no difference."""

from __future__ import annotations

import copy

import torch
from torch import nn

from trueloop import Step, supervised


def _step() -> Step:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Flatten(), nn.Linear(8 * 16, 3))
    model = model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, fused=True)
    return Step(model, optimizer, supervised(nn.CrossEntropyLoss()))


def test_an_optimizer_goes_on_from_entries_that_were_read_in_rows() -> None:
    generator = torch.Generator().manual_seed(1)
    batches = [
        (torch.randn(4, 3, 6, 6, generator=generator), torch.arange(4) % 3) for _ in range(6)
    ]
    straight, resumed = _step(), _step()
    for batch in batches[:3]:
        straight(batch)
    state = copy.deepcopy(straight.state_dict())
    for entries in state["optimizer"]["state"].values():
        for name, entry in entries.items():
            entries[name] = entry.contiguous()
    resumed.load_state_dict(state)
    kernel = resumed.model.get_parameter("0.weight")
    assert resumed.optimizer.state[kernel]["exp_avg"].stride() == kernel.stride()
    for batch in batches[3:]:
        straight(batch)
        resumed(batch)
    here, there = straight.model.state_dict(), resumed.model.state_dict()
    assert all(torch.equal(here[name], there[name]) for name in here)
