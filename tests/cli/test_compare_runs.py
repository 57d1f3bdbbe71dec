"""How two runs differ, bit by bit, wherever their tensors lie in memory."""

from __future__ import annotations

import torch

from trueloop.cli._compare_runs import state_differences


def test_tensors_are_compared_by_value_in_any_order_of_memory() -> None:
    generator = torch.Generator().manual_seed(0)
    # The one channel leaves the order of memory open: torch calls the tensor contiguous.
    for shape in ((16, 1, 3, 3), (1, 16, 1, 1), (4, 3, 2, 2)):
        rows = torch.randn(shape, generator=generator)
        last = rows.to(memory_format=torch.channels_last)
        assert list(state_differences({"w": rows}, {"w": last})) == []
        other = last.clone()
        other[0, 0, 0, 0] = 9.0
        (found,) = state_differences({"w": rows}, {"w": other})
        assert "w" in found.where
        assert found.what.startswith("1 of ")
