"""What TL905 says of a cast, measured: DDP averages no gradient after it."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from on_ranks import on_ranks


def gradient(cast: str) -> list[float]:
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    if cast == "before":
        net.double()
    wrapper = DistributedDataParallel(net)
    if cast == "inside":
        net.double()
    elif cast == "outside":
        wrapper.double()
    torch.manual_seed(torch.distributed.get_rank())
    wrapper(torch.randn(8, 4).double()).square().mean().backward()
    assert net.weight.grad is not None
    return net.weight.grad.flatten().tolist()


@pytest.mark.parametrize("cast", ["before", "inside", "outside"])
def test_gradients_of_two_ranks(cast: str) -> None:
    first, second = on_ranks(2, gradient, cast)
    assert (first == second) == (cast == "before")
