"""What is asked of torch's DistributedDataParallel."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

import trueloop
from on_ranks import on_ranks
from trueloop import DDPOptions


def _update(broadcast: bool) -> tuple[list[str], bool, bool]:
    """The warnings, whether buffers come from rank 0, whether a gradient is held once."""
    model = nn.Sequential(nn.Linear(40, 40), nn.BatchNorm1d(40), nn.Linear(40, 40))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    once: list[bool] = []

    def look(*_: object) -> None:
        gradients = [p.grad for p in model.parameters()]
        together = {gradient.untyped_storage().data_ptr() for gradient in gradients}
        once.append(len(together) < len(gradients))

    optimizer.register_step_pre_hook(look)
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        loss = trueloop.supervised(nn.MSELoss())
        options = DDPOptions(broadcast_buffers=broadcast)
        step = trueloop.Step(model, optimizer, loss, parallel=options)
        for shift in (trueloop.ranks.rank(), 0):  # of which the statistics know
            step((torch.full((4, 40), float(shift)), torch.zeros(4, 40)))
    ours = [str(each.message) for each in found if "buffers" in str(each.message)]
    means = trueloop.ranks.gathered(model[1].running_mean.tolist())
    return ours, means[0] == means[1], all(once)


@pytest.mark.parametrize("broadcast", [True, False])
def test_ddp_has_the_gradients_once_and_says_nothing_of_an_option_that_nobody_set(
    broadcast: bool,
) -> None:
    for said, alike, once in on_ranks(2, _update, broadcast):
        assert once, "the gradient lies in the bucket that travels"
        assert not (broadcast and said)
        assert alike is broadcast
